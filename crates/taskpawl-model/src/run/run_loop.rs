//! One run as a state machine: schedule, limits, open questions and tool lookup, without I/O.
//!
//! A driver gives [`RunLoop::handle`] every [`Input`] and carries out every [`Output`] in order. Some outputs answer at once; their
//! inputs are handled before [`RunLoop::settle`] closes the round, so that everything that came together shares one commit. The
//! engine drives it with tokio, the simulation with virtual time: both run the same code.

mod ledger;
mod questions;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub use ledger::{EndedEarly, RunLimits, RunUsage, TaskUsage};

use crate::command::{Answer, Grant, Inquiry, Needs, Report, Round, RunRules, StartedCall};
use crate::rules::DecideError;
use crate::run::run_view::RunView;
use crate::run::schedule::{Action, Event, Limits, State, Stop, step};
use crate::task::spec::TaskSpec;
use crate::task::status::Status;
use crate::value::Selector;
use crate::value::Timestamp;
use crate::value::{Key, KeyMap, RunId, Shared, SharedText, TaskId};
use crate::view::View;
use ledger::{Ledger, TIMEOUT};
use questions::Questions;

/// The first pause between two checks for changes of other writers.
///
/// They are polled, because SQLite cannot notify across processes. The pause doubles while nothing happens: 200 ms is the longest
/// delay, and an idle run costs at most five reads of the revision a second.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

const LAST_PAUSE: Duration = Duration::from_millis(200);

/// The statuses of tasks that have not ended.
const UNFINISHED: [Status; 3] = [Status::Todo, Status::InProgress, Status::Blocked];

/// The store, the clock and the processes of the machine, as a run loop sees them.
pub trait Host {
    /// An error that ends the run.
    type Error;

    /// Reads one snapshot of the store.
    ///
    /// # Errors
    /// The store cannot be read, or `read` fails.
    fn read<T>(&mut self, read: impl FnOnce(&dyn View) -> Result<T, DecideError>) -> Result<T, Self::Error>;

    /// Returns the newest revision of the store; `seen` is the last one that the run knows.
    ///
    /// # Errors
    /// The store cannot be read.
    fn revision(&mut self, seen: u64) -> Result<u64, Self::Error>;

    /// Returns the time.
    fn now(&self) -> Timestamp;

    /// Returns whether the process of another run is alive.
    fn is_alive(&self, run: &RunId) -> bool;

    /// Returns whether a search for a tool of this name may find one.
    fn may_find(&self, tool: &str) -> bool;
}

/// Something that happened to a run.
#[derive(Debug)]
pub enum Input {
    /// A commit of the run is durable.
    Committed(Box<Answer>),
    /// A call ended.
    Ended(Box<EndedCall>),
    /// An [`Output::Inquire`] is answered.
    Granted(Key, Grant),
    /// A search that [`Output::LookUp`] asked for is over. These tools are new.
    ToolsFound(Vec<String>),
    /// An approver has answered an [`Output::Ask`], or never will.
    Decided(Key),
    /// An [`Output::Wake`] is written: these tasks ended with it.
    Woken(Vec<(Key, Status)>),
    /// The run is asked to stop, or to stop harder.
    Stop,
    /// A pause or an alarm is over.
    Tick,
}

/// A call that ended, with what it used.
#[derive(Debug)]
pub struct EndedCall {
    /// The report for the store.
    pub report: Report,
    /// The plan of its task.
    pub plan: Option<SharedText>,
    /// The run time, by the clock of the records.
    pub duration: Duration,
}

/// Something for the driver to do, in order.
#[derive(Debug, PartialEq)]
pub enum Output {
    /// Write this; answer with [`Input::Committed`].
    Commit(Box<Round>),
    /// Start this call; answer with [`Input::Ended`].
    Start(Box<StartedCall>, Option<Deadline>),
    /// Resolve paths or read the files of a task; answer with [`Input::Granted`].
    Inquire(Key, Inquiry),
    /// Kill the programs of a task.
    Kill(Key),
    /// Kill all programs.
    KillAll,
    /// Search for a tool that the registry lacks; answer with [`Input::ToolsFound`].
    LookUp(String),
    /// Ask the approver about a task; answer with [`Input::Decided`].
    Ask(Key),
    /// The approver need not decide about a task any more.
    Withdraw(Key),
    /// A task began to wait for a decision.
    Waiting(Key),
    /// The deadlines of these questions have passed: write that.
    Expire(Vec<Key>),
    /// The durable waits of these tasks are over: write that; answer with [`Input::Woken`].
    Wake(Vec<Key>),
    /// A task ended.
    TaskEnded(EndedTask),
    /// A limit was reached: fewer tasks start, or none.
    EndedEarly(EndedEarly),
    /// Runs whose processes are dead hold tasks: recover them.
    Recover,
    /// The run is over.
    Finish,
}

/// A task that ended.
#[derive(Debug, PartialEq)]
pub struct EndedTask {
    /// The task.
    pub key: Key,
    /// Its new status.
    pub status: Status,
    /// Its id and definition; `None` where the run started none of its calls.
    pub started: Option<(TaskId, Shared<TaskSpec>)>,
}

/// The time at which all calls of a plan or a run end, and the message for calls that it interrupts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadline {
    /// The time.
    pub at: Timestamp,
    /// The message.
    pub message: String,
}

/// The settings of a run that its loop has to know.
#[derive(Debug, Clone, Default)]
pub struct LoopOptions {
    /// The tasks that the run is restricted to; empty for all.
    pub only: Vec<Selector>,
    /// The maximum number of calls that run at once.
    pub jobs: usize,
    /// The names of the registered tools.
    pub tools: BTreeSet<String>,
    /// Defaults and capacities that hold for all tasks of the run.
    pub rules: RunRules,
    /// Limits of the run as a whole.
    pub limits: RunLimits,
    /// The maximum number of calls of each tool that run at once; other tools have no limit.
    pub tool_limits: BTreeMap<String, usize>,
    /// True if the run waits for agents and people, too.
    pub waits_for_agents: bool,
    /// True if an approver answers [`Output::Ask`].
    pub has_approver: bool,
}

/// One run, from its first snapshot to its end.
#[derive(Debug)]
pub struct RunLoop {
    run_view: RunView,
    state: State,
    ledger: Ledger,
    questions: Questions,
    lookup: ToolLookup,
    tool_limits: BTreeMap<String, usize>,
    waits_for_agents: bool,
    ended: BTreeMap<Status, u64>,
    pause: Duration,
    ignores_others: bool,
}

/// The result of a run, as its loop knows it.
#[derive(Debug)]
pub struct RunReport {
    /// Number of tasks that ended, by status.
    pub ended: BTreeMap<Status, u64>,
    /// The tasks that the run was restricted to; `None` for all.
    pub scope: Option<BTreeSet<Key>>,
    /// The selectors of that scope.
    pub only: Vec<Selector>,
    /// Tasks that lacked a tool, with its name.
    pub missing_tools: BTreeMap<Key, String>,
    /// Tasks that need more of a resource than there is, with the reason.
    pub never_fits: BTreeMap<Key, String>,
    /// Tasks whose resources or paths are held by other runs or agents.
    pub unmet: Vec<(Key, Needs)>,
    /// The limits that were reached.
    pub ended_early: Vec<EndedEarly>,
    /// Usage of the calls.
    pub spent: RunUsage,
    /// The stop that was requested.
    pub stop: Stop,
}

/// Searches for tools that the registry lacks. Each name is searched for once in a run.
#[derive(Debug, Default)]
struct ToolLookup {
    asked: BTreeSet<String>,
    running: usize,
}

impl ToolLookup {
    fn look_for(&mut self, host: &impl Host, names: impl IntoIterator<Item = String>) -> Vec<Output> {
        let is_new = |name: &String| host.may_find(name) && self.asked.insert(name.clone());
        let new: Vec<Output> = names.into_iter().filter(is_new).map(Output::LookUp).collect();
        self.running += new.len();
        new
    }
}

impl RunLoop {
    /// Returns the loop of a run that has read nothing yet.
    pub fn new(run: RunId, options: LoopOptions, now: Timestamp) -> Self {
        let LoopOptions { only, jobs, tools, rules, limits, tool_limits, waits_for_agents, has_approver } =
            options;
        Self {
            run_view: RunView::new(run, only, tools).with_rules(rules),
            state: State::new(jobs, KeyMap::default()),
            ledger: Ledger::new(limits, now),
            questions: Questions::new(has_approver),
            lookup: ToolLookup::default(),
            tool_limits,
            waits_for_agents,
            ended: BTreeMap::new(),
            pause: FIRST_PAUSE,
            ignores_others: false,
        }
    }

    /// Breaks the loop on purpose, as a control of its tests: it never reads what others wrote.
    #[cfg(feature = "faults")]
    pub fn ignore_other_writers(&mut self) {
        self.ignores_others = true;
    }

    /// Returns the tasks, the order, and the tools that the run knows of the store.
    pub fn run_view(&self) -> &RunView {
        &self.run_view
    }

    /// Returns whether the run was asked to stop.
    pub fn stop(&self) -> Stop {
        self.state.stop()
    }

    /// Returns the ready tasks that do not start because other runs, agents or people hold a resource, a path or a place of theirs.
    pub fn held_up_by_others(&self) -> impl Iterator<Item = (Key, &Needs)> {
        self.state.held_up_by_others()
    }

    /// Returns how many calls run.
    pub fn running_calls(&self) -> usize {
        self.state.running_calls()
    }

    /// Returns how long the driver waits for inputs before it gives [`Input::Tick`].
    pub fn pause(&self) -> Duration {
        self.pause
    }

    /// Returns the time at which the driver has to give [`Input::Tick`], however long the pause is: the end of the first pause of a
    /// task, of a limit or of a question.
    pub fn next_alarm(&self) -> Option<Timestamp> {
        let alarms = [self.state.next_alarm(), self.ledger.next_deadline(), self.questions.next_end()];
        let alarms = alarms.into_iter().chain([self.run_view.next_wake()]);
        alarms.into_iter().flatten().min()
    }

    /// Reads the ready tasks, the open questions and the limits of plans, once, after what dead runs left was recovered.
    ///
    /// # Errors
    /// A selector names no task, or the store cannot be read.
    pub fn begin<H: Host>(&mut self, host: &mut H) -> Result<Vec<Output>, H::Error> {
        let jobs = self.state.jobs();
        let (run_view, questions) = (&mut self.run_view, &mut self.questions);
        let (beginning, asked, plans) = host.read(|view| {
            let beginning = run_view.begin(view, jobs)?;
            let mut kept = Vec::new();
            for plan in view.plans()? {
                if ledger::has_limits(&plan) && run_view.has_tasks_of(view, &plan.name, &[])? {
                    kept.push(plan);
                }
            }
            Ok((beginning, questions.begin(view, run_view.scope())?, kept))
        })?;
        self.ledger.take_plans(plans);
        let limits = Limits { tools: self.tool_limits.clone(), ..self.ledger.limits() };
        self.state = State::new(jobs, beginning.ranks).with_limits(limits);
        let mut outputs = asked;
        self.step(Event::Ready(beginning.ready), &mut outputs);
        Ok(outputs)
    }

    /// Takes in one input.
    ///
    /// # Errors
    /// A selector names no task any more, or the store cannot be read.
    pub fn handle<H: Host>(&mut self, host: &mut H, input: Input) -> Result<Vec<Output>, H::Error> {
        let mut outputs = Vec::new();
        match input {
            Input::Committed(answer) => self.take_answer(host, *answer, &mut outputs)?,
            Input::Ended(ended) => self.take_ended(host, *ended, &mut outputs)?,
            Input::Granted(key, grant) => self.step(Event::Found(key, grant), &mut outputs),
            Input::ToolsFound(names) => {
                self.lookup.running = self.lookup.running.saturating_sub(1);
                if !names.is_empty() {
                    self.take_tools(host, names, &mut outputs)?;
                }
            }
            Input::Decided(key) => {
                self.questions.note_decided(key);
                self.take_changes(host, &mut outputs)?;
            }
            Input::Woken(ended) => {
                for (key, status) in ended {
                    if self.run_view.scope().is_none_or(|scope| scope.contains(&key)) {
                        self.note_end(host, key, status, &mut outputs)?;
                    }
                }
            }
            Input::Stop => {
                self.questions.stop(&mut outputs);
                self.step(Event::Stop, &mut outputs);
            }
            Input::Tick => {
                self.take_changes(host, &mut outputs)?;
                let now = host.now();
                if self.state.next_alarm().is_some_and(|alarm| alarm <= now) {
                    self.step(Event::Due(now), &mut outputs);
                }
            }
        }
        Ok(outputs)
    }

    /// Closes a round: nothing more has happened for now, so that all of it is written in one commit.
    ///
    /// The driver calls it when it has no input left, and waits afterwards unless an output was answered at once.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn settle<H: Host>(&mut self, host: &mut H) -> Result<Vec<Output>, H::Error> {
        let mut outputs = Vec::new();
        self.questions.ask(&mut outputs);
        self.check_limits(host, &mut outputs)?;
        if self.state.is_out_of_work() {
            let more = self.more_may_come(host, &mut outputs)?;
            self.step(Event::MoreMayCome(more), &mut outputs);
        }
        self.step(Event::Settled, &mut outputs);
        Ok(outputs)
    }

    /// Ends the loop.
    pub fn into_report(self) -> RunReport {
        let (ended_early, spent) = self.ledger.close_books();
        RunReport {
            ended: self.ended,
            scope: self.run_view.scope().cloned(),
            only: self.run_view.selectors().to_vec(),
            missing_tools: self.run_view.missing_tools().clone(),
            never_fits: self.run_view.never_fits().clone(),
            unmet: self.state.held_up_by_others().map(|(key, needs)| (key, needs.clone())).collect(),
            ended_early,
            spent,
            stop: self.state.stop(),
        }
    }

    fn step(&mut self, event: Event, outputs: &mut Vec<Output>) {
        for action in step(&mut self.state, event) {
            outputs.push(match action {
                Action::Commit(commit) => Output::Commit(Box::new(self.run_view.round(*commit))),
                Action::Start(call) => {
                    self.ledger.note_start(&call);
                    let deadline = self.ledger.deadline(call.plan.as_deref());
                    Output::Start(call, deadline)
                }
                Action::Find(key, inquiry) => Output::Inquire(key, inquiry),
                Action::Kill(key) => Output::Kill(key),
                Action::KillAll => Output::KillAll,
                Action::Finish => Output::Finish,
            });
        }
    }

    fn step_all(&mut self, events: impl IntoIterator<Item = Event>, outputs: &mut Vec<Output>) {
        events.into_iter().for_each(|event| self.step(event, outputs));
    }

    /// Checks the limits before anything else of an input counts, so that nothing starts because of it.
    fn check_limits<H: Host>(&mut self, host: &mut H, outputs: &mut Vec<Output>) -> Result<(), H::Error> {
        for (event, ended) in self.ledger.check(host.now()) {
            self.step(event, outputs);
            // A plan whose tasks all ended before its deadline did not end early.
            if let Some(plan) = ended.plan.as_deref().filter(|_| ended.limit == TIMEOUT) {
                let run_view = &self.run_view;
                let is_left = host.read(|view| Ok(run_view.has_tasks_of(view, plan, &UNFINISHED)?))?;
                if !is_left {
                    self.ledger.forget_end(plan);
                    continue;
                }
            }
            outputs.push(Output::EndedEarly(ended));
        }
        Ok(())
    }

    fn take_answer<H: Host>(
        &mut self,
        host: &mut H,
        mut answer: Answer,
        outputs: &mut Vec<Output>,
    ) -> Result<(), H::Error> {
        // Failures count before the answer is applied: tasks that it makes ready must not start beyond `maxFailures`.
        for (key, status) in std::mem::take(&mut answer.ended) {
            self.note_end(host, key, status, outputs)?;
        }
        self.check_limits(host, outputs)?;
        let asked = std::mem::take(&mut answer.asked);
        let missing: Vec<String> = answer.missing_tools.iter().map(|(_, name)| name.clone()).collect();
        // A search may have ended while the commit was under way. Its tools are not missing any more, and no further search reports
        // them.
        let is_found = missing.iter().any(|name| self.run_view.has_tool(name));
        outputs.extend(self.lookup.look_for(host, missing));
        self.take_in(host, answer, outputs)?;
        if is_found {
            self.take_tools(host, Vec::new(), outputs)?;
        }
        self.check_questions(host, asked, outputs)
    }

    fn take_in<H: Host>(
        &mut self,
        host: &mut H,
        answer: Answer,
        outputs: &mut Vec<Output>,
    ) -> Result<(), H::Error> {
        // The plain path needs no read of the store. It applies if no other process committed in between and all ready tasks are
        // known.
        let events = if self.run_view.is_plain(&answer) {
            vec![self.run_view.take_plain(answer)]
        } else {
            host.read(|view| self.run_view.take_answer(view, answer))?
        };
        self.step_all(events, outputs);
        Ok(())
    }

    fn note_end<H: Host>(
        &mut self,
        host: &mut H,
        key: Key,
        status: Status,
        outputs: &mut Vec<Output>,
    ) -> Result<(), H::Error> {
        *self.ended.entry(status).or_default() += 1;
        let started = self.ledger.close(key);
        if status == Status::Failed {
            let plan = host.read(|view| Ok(view.task(key)?.and_then(|task| task.plan)))?;
            self.ledger.note_failure(plan.as_deref());
        }
        outputs.push(Output::TaskEnded(EndedTask { key, status, started }));
        Ok(())
    }

    fn take_ended<H: Host>(
        &mut self,
        host: &mut H,
        ended: EndedCall,
        outputs: &mut Vec<Output>,
    ) -> Result<(), H::Error> {
        let EndedCall { report, plan, duration } = ended;
        // The account has to be charged before the limits are checked.
        self.ledger.note_end(report.task, plan.as_deref(), duration, report.usage.as_ref());
        self.check_limits(host, outputs)?;
        self.step(Event::Ended(Box::new(report)), outputs);
        Ok(())
    }

    /// Takes in new tools, with the tasks that only waited for one of them.
    fn take_tools<H: Host>(
        &mut self,
        host: &mut H,
        names: Vec<String>,
        outputs: &mut Vec<Output>,
    ) -> Result<(), H::Error> {
        let events = host.read(|view| Ok(self.run_view.take_tools(view, names)?))?;
        self.step_all(events, outputs);
        Ok(())
    }

    /// Takes in what others wrote. The longer nothing happens, the longer the next pause is.
    fn take_changes<H: Host>(&mut self, host: &mut H, outputs: &mut Vec<Output>) -> Result<(), H::Error> {
        let expired = self.questions.expired(host.now());
        let mut has_expired = !expired.is_empty();
        outputs.extend(has_expired.then_some(Output::Expire(expired)));
        let now = host.now();
        if self.run_view.next_wake().is_some_and(|wake| wake <= now) {
            let run_view = &mut self.run_view;
            let woken = host.read(|view| Ok(run_view.take_due(view, now)?))?;
            has_expired |= !woken.is_empty();
            outputs.extend((!woken.is_empty()).then_some(Output::Wake(woken)));
        }
        let revision = host.revision(self.run_view.seen())?;
        if self.ignores_others {
            return Ok(());
        }
        if revision > self.run_view.seen() {
            let events = host.read(|view| self.run_view.take_foreign(view, revision))?;
            self.step_all(events, outputs);
            self.check_questions(host, Vec::new(), outputs)?;
            self.pause = FIRST_PAUSE;
        } else if has_expired {
            // The expiry is written after this: its effect is a change like those of others.
            self.pause = FIRST_PAUSE;
        } else {
            self.pause = (self.pause * 2).min(LAST_PAUSE);
        }
        Ok(())
    }

    /// Reads the questions of tasks that ask something now, and of those that others have changed.
    fn check_questions<H: Host>(
        &mut self,
        host: &mut H,
        mut changed: Vec<Key>,
        outputs: &mut Vec<Output>,
    ) -> Result<(), H::Error> {
        changed.extend(self.run_view.take_changed());
        if changed.is_empty() {
            return Ok(());
        }
        let (questions, scope) = (&mut self.questions, self.run_view.scope());
        outputs.extend(host.read(|view| Ok(questions.update(view, scope, &changed)?))?);
        Ok(())
    }

    /// Returns whether a run that is out of work waits all the same: other runs hold tasks of its scope, with
    /// `waits_for_agents` agents and people do, a search or a question is open, or others wrote something that is not read yet.
    fn more_may_come<H: Host>(&mut self, host: &mut H, outputs: &mut Vec<Output>) -> Result<bool, H::Error> {
        if self.state.stop() != Stop::No {
            return Ok(false);
        }
        let (run_view, waits_for_agents) = (&self.run_view, self.waits_for_agents);
        // Resources and paths are also given back by tasks outside the scope.
        let is_anywhere = self.state.waits_for_others();
        // The run takes no task of these plans any more, whatever its wait, an agent or an answer brings.
        let ended = self.ledger.ended_plans();
        let prospects = host.read(|view| {
            let prospects = if is_anywhere {
                run_view.prospects_anywhere(view, waits_for_agents)
            } else {
                run_view.prospects(view, waits_for_agents, &ended)
            };
            Ok(prospects?)
        })?;
        if prospects.runs.iter().any(|run| !host.is_alive(run)) {
            // Dead runs release nothing by themselves: without recovery the run would wait for them forever.
            outputs.push(Output::Recover);
        }
        if prospects.is_behind {
            self.pause = FIRST_PAUSE;
        }
        let questions = &mut self.questions;
        outputs.extend(host.read(|view| Ok(questions.drop_settled(view)?))?);
        let is_any_open =
            self.waits_for_agents && host.read(|view| Ok(questions.is_any_open(view, &ended)?))?;
        let may_be_decided = self.questions.is_asking() || is_any_open;
        // A wait that is over brings work as soon as that is written.
        let now = host.now();
        let is_waking = self.run_view.next_wake().is_some_and(|wake| wake <= now);
        Ok(prospects.more_may_come() || self.lookup.running > 0 || may_be_decided || is_waking)
    }
}
