//! The runs that this server has started, with ways to stop them and to answer their questions.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use taskpawl::model::task::ApprovalRequest;
use taskpawl::model::value::RunId;
use taskpawl::{ApprovalVerdict, Approver, Observer, RunControl, RunError, RunEvent, RunOptions, Taskpawl};
use taskpawl_text::error_chain;
use tokio::sync::{oneshot, watch};
use tokio_util::task::TaskTracker;

/// The runs of this process.
#[derive(Debug, Default)]
pub(super) struct Runs {
    live: Mutex<BTreeMap<RunId, Live>>,
    /// Runs that ended because the store failed, with the error. All other ends are recorded in the store.
    broken: Mutex<BTreeMap<RunId, String>>,
    tracker: TaskTracker,
    /// Counts changes of runs that are not events of the store: an open question, the end of a run.
    news: watch::Sender<u64>,
}

#[derive(Debug, Clone)]
struct Live {
    control: RunControl,
    questions: Option<Arc<QuestionSession>>,
}

impl Runs {
    /// Starts a run, and returns when it is recorded. The run continues if the caller goes away.
    ///
    /// # Errors
    /// The run could not start, and is not recorded.
    pub(super) async fn start(
        self: &Arc<Self>,
        plans: Taskpawl,
        id: RunId,
        mut options: RunOptions,
        is_elicited: bool,
    ) -> Result<(), RunError> {
        let (started, has_started) = oneshot::channel();
        let control = RunControl::default();
        let questions = is_elicited.then(|| Arc::new(QuestionSession::new(self.news.clone())));
        options.id = Some(id.clone());
        options.control = control.clone();
        options.observer = Some(Arc::new(Start(Mutex::new(Some(started)))));
        options.approver = questions.clone().map(|questions| questions as Arc<dyn Approver>);
        locked(&self.live).insert(id.clone(), Live { control, questions });
        let runs = Arc::clone(self);
        let run = self.tracker.spawn(async move {
            let ended = plans.run_all_ready(options).await;
            runs.leave(&id, ended)
        });
        tokio::select! {
            // A run that has started and ended at once is reported as started: its end is recorded.
            biased;
            Ok(()) = has_started => Ok(()),
            ended = run => match ended {
                Ok(ended) => ended,
                // The run panicked, or the runtime is shutting down. The store has the known state.
                Err(_) => Ok(()),
            },
        }
    }

    fn leave(&self, id: &RunId, ended: Result<taskpawl::RunSummary, RunError>) -> Result<(), RunError> {
        // The error is stored first: a reader that no longer finds the run alive has to find why it ended.
        if let Err(error) = &ended {
            locked(&self.broken).insert(id.clone(), error_chain(error));
        }
        locked(&self.live).remove(id);
        self.news.send_modify(|count| *count += 1);
        ended.map(drop)
    }

    /// Asks a run to stop. The first request lets running calls end; the second kills them. Returns false if the run
    /// does not belong to this process.
    pub(super) fn stop(&self, id: &RunId) -> bool {
        let live = locked(&self.live).get(id).cloned();
        live.map(|live| live.control.stop()).is_some()
    }

    /// Returns the number of stop requests to a run of this process; 0 for all others.
    pub(super) fn stops(&self, id: &RunId) -> u32 {
        locked(&self.live).get(id).map_or(0, |live| live.control.requests())
    }

    /// Asks every run to stop, as [`stop`](Self::stop) does.
    pub(super) fn stop_all(&self) {
        for live in locked(&self.live).values() {
            live.control.stop();
        }
    }

    /// Waits until all runs have ended. None starts afterwards.
    pub(super) async fn wait(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }

    pub(super) fn is_own(&self, id: &RunId) -> bool {
        locked(&self.live).contains_key(id)
    }

    /// Returns the error that ended a run without a recorded end.
    pub(super) fn problem(&self, id: &RunId) -> Option<String> {
        locked(&self.broken).get(id).cloned()
    }

    /// Returns the open questions of a run.
    pub(super) fn questions(&self, id: &RunId) -> Vec<ApprovalRequest> {
        self.session(id).map(|questions| questions.questions()).unwrap_or_default()
    }

    /// Answers a question of a run. Ignored if the question is closed.
    pub(super) fn answer(&self, id: &RunId, key: &str, verdict: ApprovalVerdict) {
        if let Some(questions) = self.session(id) {
            questions.answer(key, verdict);
        }
    }

    /// Opens the single form of a run for a question. Returns false if another form is open, or the run is over.
    pub(super) fn begin_form(&self, id: &RunId, key: &str) -> bool {
        self.session(id).is_some_and(|questions| {
            let mut form = locked(&questions.form);
            let is_free = form.is_none();
            form.get_or_insert_with(|| key.to_owned());
            is_free
        })
    }

    /// Marks the form of a run as closed.
    pub(super) fn end_form(&self, id: &RunId) {
        if let Some(questions) = self.session(id) {
            *locked(&questions.form) = None;
        }
        self.news.send_modify(|count| *count += 1);
    }

    /// Returns whether a form of a run is open at a client.
    pub(super) fn has_form(&self, id: &RunId) -> bool {
        self.session(id).is_some_and(|questions| locked(&questions.form).is_some())
    }

    /// Runs work in the background. [`wait`](Self::wait) waits for it.
    pub(super) fn beside(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tracker.spawn(work);
    }

    /// Returns a receiver of changes of runs that are not events of the store.
    pub(super) fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    fn session(&self, id: &RunId) -> Option<Arc<QuestionSession>> {
        locked(&self.live).get(id)?.questions.clone()
    }
}

/// Reports that a run is recorded.
struct Start(Mutex<Option<oneshot::Sender<()>>>);

impl fmt::Debug for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Start")
    }
}

impl Observer for Start {
    fn event(&self, event: &RunEvent) {
        if matches!(event, RunEvent::RunStarted { .. })
            && let Some(started) = locked(&self.0).take()
        {
            // The caller may be gone.
            let _ = started.send(());
        }
    }
}

/// The questions of a run, which wait for a client that can pass them on to a person.
#[derive(Debug)]
pub(super) struct QuestionSession {
    open: Mutex<BTreeMap<String, Open>>,
    /// The question that a client of the older era shows in a form.
    form: Mutex<Option<String>>,
    news: watch::Sender<u64>,
}

#[derive(Debug)]
struct Open {
    request: ApprovalRequest,
    /// Receives the answer; dropped with the question.
    verdict: oneshot::Sender<ApprovalVerdict>,
}

/// Returns the key of a question among those of its run.
pub(super) fn key_of(request: &ApprovalRequest) -> String {
    let hash: String = request.hash.chars().take(16).collect();
    format!("{}.{hash}", request.task)
}

impl QuestionSession {
    fn new(news: watch::Sender<u64>) -> Self {
        Self { open: Mutex::default(), form: Mutex::default(), news }
    }

    fn questions(&self) -> Vec<ApprovalRequest> {
        locked(&self.open)
            .values()
            .filter(|open| !open.verdict.is_closed())
            .map(|open| open.request.clone())
            .collect()
    }

    fn answer(&self, key: &str, verdict: ApprovalVerdict) {
        if let Some(open) = locked(&self.open).remove(key) {
            // The question may have been closed in another way.
            let _ = open.verdict.send(verdict);
        }
    }
}

/// Announces on drop that a question is closed, so that a cancelled `decide` announces it as well.
struct Told<'p>(&'p watch::Sender<u64>);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count += 1);
    }
}

#[async_trait]
impl Approver for QuestionSession {
    async fn decide(&self, request: &ApprovalRequest) -> ApprovalVerdict {
        let _told = Told(&self.news);
        let (verdict, answered) = oneshot::channel();
        locked(&self.open).insert(key_of(request), Open { request: request.clone(), verdict });
        self.news.send_modify(|count| *count += 1);
        answered.await.unwrap_or(ApprovalVerdict::Skip)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
