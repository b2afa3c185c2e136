//! The simulated world: the store, the clock, and all future happenings.

use taskpawl_model::command::{Answer, Apply, Command, Context, Refusal, Request};
use taskpawl_model::plan::Plan;
use taskpawl_model::task::{ActorKind, Origin};
use taskpawl_model::value::RunId;
use taskpawl_model::value::Timestamp;
use taskpawl_model::view::{View, ViewResult};
use taskpawl_store::{Committer, Location};

use super::event::{Agenda, SimulatedEvent};
use super::living::READ;
use super::oracle::Oracle;
use super::report::{Broken, Coverage, Fault, Played};
use super::run::Run;
use super::tools::{RARE, Tools, WORK};
use crate::plans::RandomPlan;
use crate::random::Random;

/// Step limit. No simulation needs as many steps, so one that exceeds it does not terminate.
const MAX_STEPS: u64 = 20_000;

/// Start of the simulated time, in milliseconds since 1970.
const EPOCH: i64 = 1_893_456_000_000;

/// Kinds of happenings that the simulation of a seed may contain.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// People give commands that change the outcome of the plan. Then it cannot be compared with the interpreter.
    pub(super) hands: bool,
    pub(super) crashes: bool,
    pub(super) signals: bool,
    pub(super) fault: Option<Fault>,
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) random: Random,
    pub(super) rules: Rules,
    pub(super) plan: RandomPlan,
    pub(super) store: Committer,
    pub(super) now: u64,
    pub(super) step: u64,
    pub(super) agenda: Agenda,
    pub(super) runs: Vec<Run>,
    pub(super) tools: Tools,
    pub(super) oracle: Oracle,
    pub(super) coverage: Coverage,
    /// Set for the end of a simulation: no actor interferes and nothing is killed any more.
    pub(super) is_quiet: bool,
    trace: Option<Vec<String>>,
}

/// Simulates a seed to its end, or until a check fails.
pub fn play(seed: u64, fault: Option<Fault>) -> Played {
    World::new(seed, fault, None).play()
}

/// Simulates a seed and records a trace.
pub fn play_aloud(seed: u64, fault: Option<Fault>) -> Played {
    World::new(seed, fault, Some(Vec::new())).play()
}

impl World {
    fn new(seed: u64, fault: Option<Fault>, trace: Option<Vec<String>>) -> Self {
        let mut random = Random::new(seed ^ 0x5eed_0051);
        let rules =
            Rules { hands: random.chance(40), crashes: random.chance(65), signals: random.chance(40), fault };
        Self {
            random,
            rules,
            plan: RandomPlan::new(seed),
            store: Committer::open(&Location::Memory),
            now: 0,
            step: 0,
            agenda: Agenda::default(),
            runs: Vec::new(),
            tools: Tools::default(),
            oracle: Oracle::default(),
            coverage: Coverage::default(),
            is_quiet: false,
            trace,
        }
    }

    fn play(mut self) -> Played {
        for position in 0..self.plan.tasks.len() {
            let task = format!("t{position}: {:?}", self.plan.tasks[position]);
            self.note(|| task);
        }
        self.apply();
        self.plan_what_happens();
        self.go_on();
        if !self.is_broken() {
            self.finale();
        }
        let broken = self.oracle.broken();
        let broken = (!broken.is_empty()).then(|| Broken { step: self.step, lines: broken.to_vec() });
        self.coverage.add("simulations");
        Played { coverage: self.coverage, broken, trace: self.trace.unwrap_or_default() }
    }

    fn apply(&mut self) {
        let mut plan = self.plan.to_plan();
        self.vary_tools(&mut plan);
        let apply = Apply { plan, name: "random".to_owned(), ..Apply::default() };
        if let Err(refusal) = self.command("author", None, Command::Apply(std::sync::Arc::new(apply))) {
            self.fail(format!("the plan was refused: {refusal}"));
        }
    }

    fn vary_tools(&mut self, plan: &mut Plan) {
        for call in plan.tasks.iter_mut().flat_map(|task| &mut task.calls) {
            let tool = match self.random.below(10) {
                0..=2 => READ,
                3 => RARE,
                _ => WORK,
            };
            tool.clone_into(&mut call.spec.tool_name);
        }
    }

    fn plan_what_happens(&mut self) {
        self.add_run(0);
        for percent in [70, 35] {
            if self.random.chance(percent) {
                // Runs that start at the same moment compete most.
                let at = if self.random.chance(40) { 0 } else { self.random.below_u64(250) };
                self.add_run(at);
            }
        }
        for agent in 0..self.random.below(4) {
            let (at, more) = (self.random.below_u64(150), 3 + self.random.below(12));
            self.agenda.plan(at, SimulatedEvent::Agent { agent, more });
        }
        if self.rules.hands {
            let (at, more) = (self.random.below_u64(60), 4 + self.random.below(30));
            self.agenda.plan(at, SimulatedEvent::Hand { more });
        }
    }

    /// Processes all happenings, including those that they cause.
    pub(super) fn go_on(&mut self) {
        while let Some((at, event)) = self.agenda.next() {
            self.now = at;
            self.step += 1;
            self.coverage.add("steps");
            self.happen(event);
            if self.step > MAX_STEPS {
                self.fail(format!("it has not ended after {MAX_STEPS} steps"));
            }
            if self.is_broken() {
                return;
            }
            self.check_now_and_then();
        }
    }

    fn happen(&mut self, event: SimulatedEvent) {
        match event {
            SimulatedEvent::RunStarts(run) => self.start_run(run),
            SimulatedEvent::Recovery { run, is_first, commands } => {
                self.commit_recovery(run, is_first, commands);
            }
            SimulatedEvent::RunBegins(run) => self.begin_run(run),
            SimulatedEvent::Commit { run, round } => self.commit_round(run, *round),
            SimulatedEvent::Answer { run, answer, reports } => self.answer(run, *answer, &reports),
            SimulatedEvent::Turn(run) => self.turn(run),
            SimulatedEvent::Tick { run, pause } => self.tick(run, pause),
            SimulatedEvent::ApproverDecides { run, key } => self.approver_decides(run, key),
            SimulatedEvent::Signal(run) => self.signal(run),
            SimulatedEvent::Crash(run) => self.crash(run),
            SimulatedEvent::ToolsGone(run) => self.end_tools(run),
            SimulatedEvent::ToolEnds(tool) => self.end_tool(tool),
            SimulatedEvent::Agent { agent, more } => self.agent(agent, more),
            SimulatedEvent::AgentReports(held) => self.agent_reports(&held),
            SimulatedEvent::Hand { more } => self.hand(more),
        }
    }

    pub(super) fn after(&mut self, millis: u64, event: SimulatedEvent) {
        self.agenda.plan(self.now + millis, event);
    }

    /// Schedules something at a random time within `millis`.
    pub(super) fn within(&mut self, millis: u64, event: SimulatedEvent) {
        let delay = self.random.below_u64(millis + 1);
        self.after(delay, event);
    }

    pub(super) fn time(&self) -> Timestamp {
        Self::time_at(self.now)
    }

    pub(super) fn time_at(at: u64) -> Timestamp {
        let millis = EPOCH + i64::try_from(at).expect("BUG: a simulation takes hours, not ages");
        Timestamp::from_timestamp_millis(millis).expect("BUG: the time is near 2030")
    }

    pub(super) fn request(&self, actor: &str, run: Option<RunId>, command: Command) -> Request {
        let kind = if run.is_some() { ActorKind::Run } else { ActorKind::Program };
        let context = Context {
            now: self.time(),
            actor: actor.into(),
            kind,
            run,
            origin: Origin::Library,
            policy_hook: None,
            redact: None,
        };
        Request { command, context }
    }

    pub(super) fn command(
        &mut self,
        actor: &str,
        run: Option<RunId>,
        command: Command,
    ) -> Result<Answer, Box<Refusal>> {
        let request = self.request(actor, run, command);
        self.commit(&[request]).pop().unwrap_or_else(|| Err(Box::new(Refusal::NothingReady)))
    }

    /// Commits requests; returns no outcomes if the store failed.
    pub(super) fn commit(&mut self, requests: &[Request]) -> Vec<Result<Answer, Box<Refusal>>> {
        self.coverage.add("commits");
        match self.store.commit(requests) {
            Ok(outcomes) => {
                let Self { store, oracle, .. } = self;
                if let Err(error) = store.look(|view| oracle.observe(view)) {
                    self.fail(format!("the store cannot be read: {error}"));
                }
                outcomes
            }
            Err(error) => {
                self.fail(format!("the store failed: {error}"));
                Vec::new()
            }
        }
    }

    /// Reads the store. A failed read fails the simulation.
    pub(super) fn look<T: Default>(&mut self, look: impl FnOnce(&dyn View) -> ViewResult<T>) -> T {
        match self.store.look(look) {
            Ok(seen) => seen,
            Err(error) => {
                self.fail(format!("a read failed: {error}"));
                T::default()
            }
        }
    }

    pub(super) fn fail(&mut self, line: String) {
        self.note(|| format!("WRONG: {line}"));
        self.oracle.fail(line);
    }

    pub(super) fn is_broken(&self) -> bool {
        !self.oracle.broken().is_empty()
    }

    pub(super) fn has_fault(&self, fault: Fault) -> bool {
        self.rules.fault == Some(fault)
    }

    pub(super) fn note(&mut self, text: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:>6} {}", self.now, text()));
        }
    }
}
