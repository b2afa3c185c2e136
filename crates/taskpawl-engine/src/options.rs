//! Options of a run, and the handle that stops it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use taskpawl_model::command::RunRules;
use taskpawl_model::plan::Budget;
use taskpawl_model::task::{Retry, WORKER_RESOURCE};
use taskpawl_model::value::{Map, Period, RunId, Selector};
use tokio::sync::watch;

use crate::approver::Approver;
use crate::call_executor::{CallExecutor, Offer};
use crate::observer::Observer;
use crate::quiet_plans::QuietPlans;
use crate::variables::RunVariables;

/// Options of a run.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the options are independent switches")]
pub struct RunOptions {
    /// Restricts the run to these tasks; empty means everything.
    pub only: Vec<Selector>,
    /// Number of calls that run at the same time; `None` means the number of cores plus two.
    pub jobs: Option<usize>,
    /// Wait for tasks that agents and people hold, too.
    pub wait: bool,
    /// Id of the run, which must be unique; `None` means a new random id.
    pub id: Option<RunId>,
    /// Value that the host program attaches to the calls. `None` takes it over from the surrounding scope: see
    /// [`in_scope`](taskpawl_tools::in_scope).
    pub scope: Option<String>,
    /// Receives the events of the run.
    pub observer: Option<Arc<dyn Observer>>,
    /// Decides about tasks that wait for an approval. Without one they wait for `approve` or `reject`.
    pub approver: Option<Arc<dyn Approver>>,
    /// Program with arguments that runs when a task waits for an approval, when tasks have failed and when the run is
    /// over.
    ///
    /// It reads the details as JSON from standard input, and the kind of event from `TASKPAWL_EVENT`. It has 30
    /// seconds, and its result does not affect the run. Plans may name further programs for their own tasks.
    pub notify: Vec<String>,
    /// Run `notify` inside the sandbox of the calls, because it was not chosen by the user. Programs that plans name
    /// always run inside.
    pub notify_in_sandbox: bool,
    /// Plans whose events the host program reports itself: `notify` is not told about them.
    pub quiet_plans: QuietPlans,
    /// Time limit of the run. Then nothing more starts, and running calls fail with the class `timeout`. `None` leaves
    /// the limit to each plan, for its own tasks. The same holds for `max_failures` and `budget`.
    pub timeout: Option<Period>,
    /// Number of failed tasks after which nothing more starts.
    pub max_failures: Option<u64>,
    /// Consumption after which nothing more starts.
    pub budget: Option<Budget>,
    /// Retries for calls if neither they nor their tasks specify any.
    pub retry: Option<Retry>,
    /// Time limit for each attempt of a task that has none of its own. `None` leaves the default of ten minutes per
    /// call.
    pub task_timeout: Option<Period>,
    /// Capacities of resources. They override those of plans.
    pub resources: BTreeMap<String, u32>,
    /// Number of calls that run at the same time, by tool.
    pub tool_limits: BTreeMap<String, usize>,
    /// The thread that drives the run does nothing else. The commit of a single task is then written on that thread if
    /// nothing else runs, which is cheaper than handing it to another thread. Other futures of the thread are blocked
    /// meanwhile.
    pub owns_thread: bool,
    /// Run tasks with `cache` even if their inputs have not changed.
    pub no_cache: bool,
    /// Executes calls in other processes; without it all calls run here.
    pub elsewhere: Option<Arc<dyn CallExecutor>>,
    /// The git remote through which calls that leave get the files of the project, and return those that they declare in `writes`.
    /// Without it both sides have the same files.
    pub files_remote: Option<String>,
    /// Stops the run on request.
    pub control: RunControl,
    /// Parameters, stored in the run record.
    pub params: Map,
    /// Environment variables for the programs of `exec` and `shell` calls, stored nowhere.
    pub variables: RunVariables,
}

/// Handle that asks a run to stop. One request lets running calls finish; a second one ends them.
#[derive(Debug, Clone)]
pub struct RunControl {
    requests: Arc<watch::Sender<u32>>,
    /// Exit code of a stopped run.
    exit: Arc<AtomicU8>,
}

impl RunOptions {
    /// Returns the rules that apply to all tasks of the run.
    pub(crate) fn rules(&self) -> RunRules {
        RunRules {
            capacities: self.capacities(),
            retry: self.retry.clone(),
            timeout: self.task_timeout,
            no_cache: self.no_cache,
            ..RunRules::default()
        }
    }

    /// Returns the capacities of resources. The slots of workers with a label are a resource, too.
    fn capacities(&self) -> BTreeMap<String, u32> {
        let mut capacities = self.resources.clone();
        for offer in self.offers().iter() {
            for label in &offer.labels {
                let slots = capacities.entry(format!("{WORKER_RESOURCE}{label}")).or_default();
                *slots = slots.saturating_add(u32::try_from(offer.slots).unwrap_or(u32::MAX));
            }
        }
        capacities
    }

    fn offers(&self) -> Arc<[Offer]> {
        self.elsewhere.as_ref().map(|executor| executor.offers()).unwrap_or_default()
    }

    /// Returns the number of calls that run at the same time, at least 1: as many as the workers have slots, if there are any.
    pub fn jobs(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let slots = self.offers().iter().map(|offer| offer.slots).sum();
        self.jobs.unwrap_or_else(|| if slots == 0 { cores() + 2 } else { slots }).max(1)
    }
}

/// Default exit code of a stopped run: 128 plus the number of SIGINT.
const STOPPED: u8 = 130;

impl Default for RunControl {
    fn default() -> Self {
        let exit = Arc::new(AtomicU8::new(STOPPED));
        Self { requests: Arc::new(watch::Sender::new(0)), exit }
    }
}

impl RunControl {
    /// Asks the run to stop. After the first request nothing more starts and running calls may finish; the second one
    /// ends them.
    pub fn stop(&self) {
        self.requests.send_modify(|count| *count += 1);
    }

    /// Asks the run to stop like [`stop`](Self::stop), with the exit code that belongs to the received signal.
    pub fn stop_with(&self, exit: u8) {
        self.exit.store(exit, Ordering::Relaxed);
        self.stop();
    }

    /// Returns the exit code that the run has if it was asked to stop.
    pub(crate) fn exit(&self) -> u8 {
        self.exit.load(Ordering::Relaxed)
    }

    /// Returns the number of stop requests so far.
    pub fn requests(&self) -> u32 {
        *self.requests.borrow()
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u32> {
        self.requests.subscribe()
    }
}
