//! Simulation of a run from its start to its end, or to a crash.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use taskpawl_model::command::{Answer, Command, Request};
use taskpawl_model::plan::Budget;
use taskpawl_model::run::recovery::Plan;
use taskpawl_model::run::run_loop::{Input, LoopOptions, RunLimits, RunLoop};
use taskpawl_model::run::schedule::Stop;
use taskpawl_model::task::{RunRecord, TaskRecord, TaskStatus};
use taskpawl_model::value::Map;
use taskpawl_model::value::Selector;
use taskpawl_model::value::{Period, RunId, TaskId};

use super::event::SimulatedEvent;
use super::living::{READ, is_repeatable};
use super::report::Fault;
use super::tools::{RARE, WORK};
use super::world::World;
use crate::RandomPlan;

/// Lifecycle of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lifecycle {
    Planned,
    Alive,
    /// The process is dead. Its supervisor still ends its tools, and holds the lock until then.
    Killed,
    Over,
}

#[derive(Debug)]
pub(super) struct Run {
    pub(super) id: RunId,
    /// The loop that ships, driven with virtual time.
    pub(super) driven: RunLoop,
    lifecycle: Lifecycle,
    pub(super) inbox: VecDeque<Input>,
    /// A recovery is being committed; the run processes nothing else until then.
    pub(super) is_busy: bool,
    pub(super) has_begun: bool,
    pub(super) is_turn_planned: bool,
    /// Number of the current pause; ticks of earlier ones are outdated.
    pub(super) pause: u64,
}

pub(super) fn holder(task: &TaskRecord) -> Option<&RunId> {
    if let TaskStatus::InProgress { claim } = &task.body.state { claim.run.as_ref() } else { None }
}

impl World {
    /// Schedules the start of a run.
    pub(super) fn add_run(&mut self, at: u64) -> usize {
        let number = self.runs.len();
        let id = RunId::from(format!("run{number}"));
        let mut tools = BTreeSet::from([WORK.to_owned(), READ.to_owned()]);
        if self.is_quiet || self.random.chance(70) {
            tools.insert(RARE.to_owned());
        }
        let options = LoopOptions {
            only: self.selectors(),
            jobs: 1 + self.random.below(5),
            tools,
            limits: self.limits(),
            has_approver: !self.is_quiet && self.random.chance(20),
            ..LoopOptions::default()
        };
        let mut driven = RunLoop::new(id.clone(), options, Self::time_at(at));
        if self.has_fault(Fault::IgnoresOthers) {
            driven.ignore_other_writers();
        }
        self.runs.push(Run {
            id,
            driven,
            lifecycle: Lifecycle::Planned,
            inbox: VecDeque::new(),
            is_busy: false,
            has_begun: false,
            is_turn_planned: false,
            pause: 0,
        });
        self.agenda.plan(at, SimulatedEvent::RunStarts(number));
        number
    }

    fn selectors(&mut self) -> Vec<Selector> {
        if self.is_quiet || !self.random.chance(12) {
            return Vec::new();
        }
        self.coverage.add("restricted runs");
        let id: TaskId = RandomPlan::id(self.random.below(self.plan.tasks.len()));
        vec![Selector::Task(id.to_string())]
    }

    /// Returns limits that few runs have, so that most of them go on to the end.
    fn limits(&mut self) -> RunLimits {
        if self.is_quiet || !self.random.chance(12) {
            return RunLimits::default();
        }
        self.coverage.add("runs with limits");
        let small = 1 + self.random.below_u64(8);
        match self.random.below(3) {
            0 => RunLimits { max_failures: Some(1 + small / 4), ..RunLimits::default() },
            1 => RunLimits {
                budget: Some(Budget { calls: Some(small), ..Budget::default() }),
                ..RunLimits::default()
            },
            _ => {
                RunLimits { timeout: Some(Period(Duration::from_millis(small * 60))), ..RunLimits::default() }
            }
        }
    }

    pub(super) fn is_alive(&self, run: &RunId) -> bool {
        let early = self.has_fault(Fault::LockFreesEarly);
        self.runs.iter().any(|other| {
            other.id == *run
                && (other.lifecycle == Lifecycle::Alive || (other.lifecycle == Lifecycle::Killed && !early))
        })
    }

    pub(super) fn lives(&self, run: usize) -> bool {
        self.runs[run].lifecycle == Lifecycle::Alive
    }

    pub(super) fn start_run(&mut self, run: usize) {
        self.note(|| format!("run {run} starts"));
        self.coverage.add("runs");
        if self.runs.iter().any(|other| other.lifecycle == Lifecycle::Alive) {
            self.coverage.add("runs beside another");
        }
        self.runs[run].lifecycle = Lifecycle::Alive;
        let id = self.runs[run].id.clone();
        let record = RunRecord {
            id: id.clone(),
            scope: self.runs[run].driven.run_view().selectors().iter().map(ToString::to_string).collect(),
            params: Map::new(),
            actor: "runner".to_owned(),
            actor_kind: taskpawl_model::task::ActorKind::Unknown,
            stop: None,
            host: "here".to_owned(),
            started_at: self.time(),
            finished_at: None,
            recovered_at: None,
            output_pruned_at: None,
            exit: None,
            counts: BTreeMap::new(),
            ending: BTreeMap::new(),
        };
        self.runner(run, Command::start_run(record));
        self.plan_interruptions(run);
        if !self.plan_recovery(run, true) {
            self.within(4, SimulatedEvent::RunBegins(run));
        }
    }

    fn plan_interruptions(&mut self, run: usize) {
        if self.is_quiet {
            return;
        }
        if self.rules.crashes && self.random.chance(85) {
            let latest = [15, 60, 200, 500][self.random.below(4)];
            self.within(latest, SimulatedEvent::Crash(run));
        }
        if self.rules.signals && self.random.chance(60) {
            let first = self.random.below_u64(150);
            self.after(first, SimulatedEvent::Signal(run));
            if self.random.chance(60) {
                let second = first + self.random.below_u64(80);
                self.after(second, SimulatedEvent::Signal(run));
            }
        }
    }

    /// Plans the recovery from dead runs and expired leases; returns whether there is anything to write.
    pub(super) fn plan_recovery(&mut self, run: usize, is_first: bool) -> bool {
        let (now, repeats_all) = (self.time(), self.has_fault(Fault::RepeatEverything));
        let alive: BTreeSet<RunId> =
            self.runs.iter().map(|run| &run.id).filter(|id| self.is_alive(id)).cloned().collect();
        let plan = self.look(|view| {
            let is_alive = |id: &RunId| alive.contains(id);
            Plan::new(view, None, &is_alive, &|call| repeats_all || is_repeatable(call), now)
        });
        if plan.is_empty() {
            return false;
        }
        self.note(|| format!("run {run} recovers {:?}", plan.summary()));
        self.coverage.add("recoveries");
        self.runs[run].is_busy = true;
        self.within(12, SimulatedEvent::Recovery { run, is_first, commands: plan.commands() });
        true
    }

    pub(super) fn commit_recovery(
        &mut self,
        run: usize,
        is_first: bool,
        commands: Vec<(Option<RunId>, Command)>,
    ) {
        if !self.lives(run) {
            return;
        }
        let request = |(id, command)| self.request("runner", id, command);
        let requests: Vec<Request> = commands.into_iter().map(request).collect();
        self.commit(&requests);
        self.check_all();
        self.runs[run].is_busy = false;
        if is_first {
            self.within(4, SimulatedEvent::RunBegins(run));
        } else {
            self.turn(run);
        }
    }

    pub(super) fn begin_run(&mut self, run: usize) {
        if !self.lives(run) {
            return;
        }
        let Self { store, runs, .. } = self;
        let waiting = store.look(|view| runs[run].driven.run_view().tasks_with_tools(view));
        let waiting = waiting.unwrap_or_default();
        if !waiting.is_empty() {
            self.runner(run, Command::ToolsKnown { tasks: waiting });
        }
        let outputs = self.drive(run, |run_loop, host| run_loop.begin(host));
        if self.lives(run) {
            self.runs[run].has_begun = true;
            self.carry_out(run, outputs);
            self.turn(run);
        }
    }

    pub(super) fn runner(&mut self, run: usize, command: Command) -> Option<Answer> {
        let id = self.runs[run].id.clone();
        self.command("runner", Some(id), command).ok()
    }

    pub(super) fn finish(&mut self, run: usize) {
        let was_stopped = self.runs[run].driven.stop() != Stop::No;
        self.note(|| format!("run {run} is over"));
        self.check_end_of(run, was_stopped);
        self.coverage.add(if was_stopped { "runs stopped" } else { "runs finished" });
        let id = self.runs[run].id.clone();
        self.runner(run, Command::FinishRun { id, exit: 0, counts: BTreeMap::new() });
        self.runs[run].lifecycle = Lifecycle::Over;
    }

    /// Kills a run: its memory is lost, and its tools run until its supervisor ends them.
    pub(super) fn crash(&mut self, run: usize) {
        if !self.lives(run) {
            return;
        }
        self.note(|| format!("run {run} is killed"));
        self.coverage.add("crashes");
        if !self.tools.of_run(run).is_empty() {
            self.coverage.add("crashes with tools");
            self.note_killed(run);
        }
        if !self.runs[run].has_begun {
            self.coverage.add("crashes while recovering");
        }
        if self.runs[run].driven.next_alarm().is_some() {
            self.coverage.add("crashes in pauses");
        }
        self.runs[run].lifecycle = Lifecycle::Killed;
        self.within(300, SimulatedEvent::ToolsGone(run));
        if self.random.chance(85) && self.runs.len() < 10 {
            let at = self.now + self.random.below_u64(250);
            self.add_run(at);
        }
    }

    pub(super) fn end_tools(&mut self, run: usize) {
        self.note(|| format!("the tools of run {run} are ended"));
        for tool in self.tools.of_run(run) {
            self.tools.living.remove(&tool);
            self.coverage.add("tools ended after a crash");
        }
        self.runs[run].lifecycle = Lifecycle::Over;
    }
}
