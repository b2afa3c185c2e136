//! Drives the loop of each run as the engine does, with virtual time in the place of tokio.

use std::collections::BTreeSet;
use std::sync::Arc;

use taskpawl_model::command::{
    Answer, CallEnd, Command, Grant, Inquiry, Refusal, Report, Request, ResolvedWrites, Round, RunRules,
};
use taskpawl_model::rules::DecideError;
use taskpawl_model::rules::decide;
use taskpawl_model::run::run_loop::{Host, Input, Output, RunLoop};
use taskpawl_model::value::Timestamp;
use taskpawl_model::value::{Key, RunId};
use taskpawl_model::view::View;
use taskpawl_store::Committer;

use super::event::SimulatedEvent;
use super::report::Fault;
use super::world::World;

/// The store and the processes of a simulation, as the loop of a run sees them.
pub(super) struct SimulatedHost<'a> {
    store: &'a mut Committer,
    alive: BTreeSet<RunId>,
    now: Timestamp,
}

/// The scope of a run is gone, so that it cannot go on. The simulation treats it like a run that is killed.
#[derive(Debug)]
pub(super) struct ScopeGone;

impl Host for SimulatedHost<'_> {
    type Error = ScopeGone;

    fn read<T>(&mut self, read: impl FnOnce(&dyn View) -> Result<T, DecideError>) -> Result<T, ScopeGone> {
        let seen = self.store.look(|view| Ok(read(view)));
        seen.expect("BUG: a store in memory can be read").map_err(|_| ScopeGone)
    }

    fn revision(&mut self, _: u64) -> Result<u64, ScopeGone> {
        self.read(|view| Ok(view.revision()?))
    }

    fn now(&self) -> Timestamp {
        self.now
    }

    fn is_alive(&self, run: &RunId) -> bool {
        self.alive.contains(run)
    }

    fn may_find(&self, _: &str) -> bool {
        false
    }
}

impl World {
    pub(super) fn tell(&mut self, run: usize, input: Input) {
        if !self.lives(run) {
            return;
        }
        let this = &mut self.runs[run];
        this.inbox.push_back(input);
        if this.has_begun && !this.is_busy && !std::mem::replace(&mut this.is_turn_planned, true) {
            // Inputs that come meanwhile share the turn.
            self.within(3, SimulatedEvent::Turn(run));
        }
    }

    pub(super) fn signal(&mut self, run: usize) {
        if self.lives(run) {
            self.note(|| format!("run {run} is asked to stop"));
            self.coverage.add("signals");
            self.tell(run, Input::Stop);
        }
    }

    pub(super) fn answer(&mut self, run: usize, mut answer: Answer, reports: &[Report]) {
        if self.lives(run) {
            self.check_acknowledged(reports);
            if self.has_fault(Fault::DroppedReady) && self.random.chance(20) {
                answer.ready.clear();
            }
            self.tell(run, Input::Committed(Box::new(answer)));
        }
    }

    /// Runs the loop of a run with the host of this moment; a run whose scope is gone is killed.
    pub(super) fn drive(
        &mut self,
        run: usize,
        drive: impl FnOnce(&mut RunLoop, &mut SimulatedHost<'_>) -> Result<Vec<Output>, ScopeGone>,
    ) -> Vec<Output> {
        let ids = self.runs.iter().map(|run| &run.id);
        let alive = ids.filter(|id| self.is_alive(id)).cloned().collect();
        let now = self.time();
        let Self { store, runs, .. } = self;
        let outputs = drive(&mut runs[run].driven, &mut SimulatedHost { store, alive, now });
        outputs.unwrap_or_else(|ScopeGone| {
            self.note(|| format!("the scope of run {run} is gone"));
            self.crash(run);
            Vec::new()
        })
    }

    /// A run wakes up, and handles everything that has come in.
    pub(super) fn turn(&mut self, run: usize) {
        if !self.lives(run) || self.runs[run].is_busy {
            return;
        }
        self.runs[run].is_turn_planned = false;
        while self.lives(run) {
            while let Some(input) = self.runs[run].inbox.pop_front() {
                self.note(|| format!("run {run} hears {}", short(&input)));
                if let Input::Committed(answer) = &input
                    && !self.runs[run].driven.run_view().is_plain(answer)
                {
                    self.coverage.add("answers behind others");
                }
                let outputs = self.drive(run, |run_loop, host| run_loop.handle(host, input));
                self.carry_out(run, outputs);
            }
            if !self.lives(run) {
                return;
            }
            let outputs = self.drive(run, |run_loop, host| run_loop.settle(host));
            if outputs.contains(&Output::Finish) {
                return self.finish(run);
            }
            self.carry_out(run, outputs);
            if self.lives(run) && self.runs[run].inbox.is_empty() {
                return self.pause(run);
            }
        }
    }

    pub(super) fn carry_out(&mut self, run: usize, outputs: Vec<Output>) {
        for output in outputs {
            if !self.lives(run) {
                return;
            }
            match output {
                Output::Commit(round) => self.submit(run, *round),
                Output::Start(call, _) => {
                    self.start_tool(run, *call);
                    self.crash_perhaps(run);
                }
                Output::Kill(key) => self.kill_tools(run, Some(key)),
                Output::KillAll => self.kill_tools(run, None),
                Output::Inquire(key, inquiry) => {
                    self.runs[run].inbox.push_back(Input::Granted(key, granted(inquiry)));
                }
                Output::Ask(key) => self.within(60, SimulatedEvent::ApproverDecides { run, key }),
                Output::Expire(tasks) => {
                    self.coverage.add("questions expired by a run");
                    self.runner(run, Command::ExpireApprovals { tasks });
                }
                Output::Wake(tasks) => {
                    self.coverage.add("waits ended by a run");
                    if let Some(answer) = self.runner(run, Command::Wake { tasks }) {
                        self.runs[run].inbox.push_back(Input::Woken(answer.ended));
                    }
                }
                Output::EndedEarly(_) => self.coverage.add("limits reached"),
                Output::Recover => drop(self.plan_recovery(run, false)),
                Output::LookUp(_)
                | Output::Withdraw(_)
                | Output::Waiting(_)
                | Output::TaskEnded(_)
                | Output::Finish => {}
            }
        }
    }

    /// The approver of a run decides, or never will.
    pub(super) fn approver_decides(&mut self, run: usize, key: Key) {
        if !self.lives(run) {
            return;
        }
        self.coverage.add("questions to an approver");
        self.decide_the_question_of(key);
        self.tell(run, Input::Decided(key));
    }

    fn crash_perhaps(&mut self, run: usize) {
        if self.rules.crashes && !self.is_quiet && self.random.chance(2) {
            self.crash(run);
        }
    }

    fn submit(&mut self, run: usize, mut round: Round) {
        if self.has_fault(Fault::PlentyOfAll) {
            let capacities = self.plan.capacities.keys().map(|name| ((*name).to_owned(), 1000)).collect();
            round.rules = Arc::new(RunRules { capacities, ..RunRules::default() });
        }
        self.note(|| format!("run {run} submits {}", short_round(&round)));
        if self.has_fault(Fault::EarlyStart) {
            let request = self.round_request(run, &round);
            let decided = self.store.look(|view| Ok(decide(view, &request.command, &request.context).ok()));
            for call in decided.ok().flatten().map(|decision| decision.answer.started).unwrap_or_default() {
                self.start_tool(run, call);
            }
        }
        self.within(8, SimulatedEvent::Commit { run, round: Box::new(round) });
    }

    fn round_request(&self, run: usize, round: &Round) -> Request {
        let command = Command::Round(Box::new(round.clone()));
        self.request("runner", Some(self.runs[run].id.clone()), command)
    }

    /// The committer comes to a round. What a dead process had queued is gone with it.
    pub(super) fn commit_round(&mut self, run: usize, round: Round) {
        if !self.lives(run) {
            self.coverage.add("rounds lost in a crash");
            return;
        }
        let mut request = self.round_request(run, &round);
        if self.has_fault(Fault::ClockAhead) && self.random.chance(20) {
            request.context.now += chrono::TimeDelta::milliseconds(500);
        }
        let outcome = if self.has_fault(Fault::LostCommit) && self.random.chance(5) {
            self.pretend(&request)
        } else {
            self.commit(std::slice::from_ref(&request)).pop()
        };
        match outcome {
            Some(Ok(answer)) => {
                let (answer, reports) = (Box::new(answer), round.reports);
                self.within(8, SimulatedEvent::Answer { run, answer, reports });
            }
            Some(Err(refusal)) => self.fail(format!("a round was refused: {refusal}")),
            None => {}
        }
    }

    /// Answers a request without writing it.
    fn pretend(&mut self, request: &Request) -> Option<Result<Answer, Box<Refusal>>> {
        let decided = self.store.look(|view| {
            let revision = view.revision()?;
            Ok(decide(view, &request.command, &request.context).ok().map(|decision| {
                let answer = decision.answer;
                Answer { revision: revision + answer.events, ..answer }
            }))
        });
        decided.ok().flatten().map(Ok)
    }

    fn pause(&mut self, run: usize) {
        let now = self.time().timestamp_millis();
        let this = &mut self.runs[run];
        this.pause += 1;
        let pause = this.pause;
        let mut millis = u64::try_from(this.driven.pause().as_millis()).unwrap_or(u64::MAX);
        if let Some(alarm) = this.driven.next_alarm() {
            // Pauses end within a millisecond, and a tick comes at its beginning.
            millis = millis.min(u64::try_from(alarm.timestamp_millis() - now + 1).unwrap_or(0));
        }
        self.after(millis, SimulatedEvent::Tick { run, pause });
    }

    /// A pause is over, unless the run has woken up since it began.
    pub(super) fn tick(&mut self, run: usize, pause: u64) {
        let this = &self.runs[run];
        if !self.lives(run) || this.pause != pause || this.is_busy || this.is_turn_planned {
            return;
        }
        self.runs[run].inbox.push_back(Input::Tick);
        self.turn(run);
    }
}

fn granted(Inquiry { cache, writes }: Inquiry) -> Grant {
    let work = cache.map(|inputs| inputs.work);
    let asked = Some(writes).filter(|writes| !writes.is_empty());
    let writes = asked.map(|asked| ResolvedWrites { paths: asked.clone(), asked });
    Grant { fingerprint: work.clone(), work, writes }
}

fn short(input: &Input) -> String {
    match input {
        Input::Committed(answer) => {
            let started = keys(answer.started.iter().map(|call| call.key));
            let ready = keys(answer.ready.iter().map(|node| node.key));
            let paused = keys(answer.paused.iter().map(|paused| paused.key));
            let needs = &answer.needs;
            format!("committed, to start {started:?}, ready {ready:?}, in need {needs:?}, paused {paused:?}")
        }
        Input::Ended(ended) => {
            let Report { task, call, attempt, .. } = &ended.report;
            let end = match ended.report.end {
                CallEnd::Succeeded(_) => "well",
                CallEnd::Failed { .. } => "badly",
                CallEnd::Interrupted { .. } => "somehow",
                CallEnd::Asks(_) => "with a question",
            };
            format!("{task}/{call} ended {end}, attempt {attempt}")
        }
        Input::Granted(..)
        | Input::ToolsFound(_)
        | Input::Decided(_)
        | Input::Woken(_)
        | Input::Stop
        | Input::Tick => {
            format!("{input:?}")
        }
    }
}

fn short_round(round: &Round) -> String {
    let reports = keys(round.reports.iter().map(|report| report.task));
    let releases = keys(round.releases.iter().map(|(key, _)| *key));
    format!("reports {reports:?}, gives back {releases:?}, claims {:?}", keys(round.claims.iter().copied()))
}

fn keys(keys: impl Iterator<Item = Key>) -> Vec<u32> {
    keys.map(|key| key.0).collect()
}
