//! Simulation of the engine's dispatcher: a loop around `schedule::step`.

use std::collections::VecDeque;
use std::sync::Arc;

use taskpawl_model::schedule::{Action, Commit, Event, Stop, step};
use taskpawl_model::{
    Answer, CallEnd, Command, Grant, Inquiry, Key, Refusal, Report, Request, ResolvedWrites, Round, RunRules,
    decide,
};

use super::happening::Happening;
use super::report::Fault;
use super::run::{FIRST_PAUSE, News, known};
use super::world::World;

/// Longest delay between two polls for changes of others, in milliseconds.
const LAST_PAUSE: u64 = 200;

impl World {
    pub(super) fn tell(&mut self, run: usize, news: News) {
        if !self.lives(run) {
            return;
        }
        let this = &mut self.runs[run];
        this.inbox.push_back(news);
        if this.has_begun && !this.is_busy && !std::mem::replace(&mut this.is_turn_planned, true) {
            // Messages that arrive before the turn are processed in the same turn.
            self.within(3, Happening::Turn(run));
        }
    }

    pub(super) fn signal(&mut self, run: usize) {
        if self.lives(run) {
            self.note(|| format!("run {run} is asked to stop"));
            self.coverage.add("signals");
            self.tell(run, News::Event(Event::Stop));
        }
    }

    pub(super) fn answer(&mut self, run: usize, answer: Answer, reports: &[Report]) {
        if self.lives(run) {
            self.check_acknowledged(reports);
            self.tell(run, News::Answer(Box::new(answer)));
        }
    }

    /// Processes the inbox of a run, like the dispatcher when it wakes up.
    pub(super) fn turn(&mut self, run: usize) {
        if !self.lives(run) || self.runs[run].is_busy {
            return;
        }
        self.runs[run].is_turn_planned = false;
        let mut events = VecDeque::new();
        while let Some(news) = self.runs[run].inbox.pop_front() {
            match news {
                News::Event(event) => events.push_back(event),
                News::Answer(answer) => self.take_answer(run, *answer, &mut events),
            }
        }
        self.handle(run, events);
    }

    fn take_answer(&mut self, run: usize, answer: Answer, events: &mut VecDeque<Event>) {
        let Self { store, runs, .. } = self;
        let intake = &mut runs[run].intake;
        let taken = if intake.is_plain(&answer) {
            Some(vec![intake.take_plain(answer)])
        } else {
            self.coverage.add("answers behind others");
            store.look(|view| Ok(known(intake.take_answer(view, answer)))).ok().flatten()
        };
        self.take(run, taken, events);
    }

    fn take(&mut self, run: usize, taken: Option<Vec<Event>>, events: &mut VecDeque<Event>) {
        match taken {
            Some(taken) => {
                for event in taken {
                    let event = self.heard(event);
                    events.push_back(event);
                }
            }
            // The task or plan to which the run was restricted no longer exists.
            None => self.crash(run),
        }
    }

    /// Returns the event as the run receives it. With the fault `DroppedReady` some ready tasks are missing.
    pub(super) fn heard(&mut self, mut event: Event) -> Event {
        let is_dropped = self.has_fault(Fault::DroppedReady) && self.random.chance(20);
        if let Event::Ready(ready) = &mut event
            && is_dropped
        {
            ready.clear();
        }
        if let Event::Committed(written) = &mut event
            && is_dropped
        {
            written.ready.clear();
        }
        event
    }

    fn handle(&mut self, run: usize, mut events: VecDeque<Event>) {
        while self.lives(run) {
            while let Some(event) = events.pop_front() {
                self.note(|| format!("run {run} hears {}", short(&event)));
                let actions = step(&mut self.runs[run].state, event);
                self.carry_out(run, actions, &mut events);
            }
            if self.runs[run].state.is_out_of_work() {
                let more = self.more_may_come(run);
                step(&mut self.runs[run].state, Event::MoreMayCome(more));
            }
            let actions = step(&mut self.runs[run].state, Event::Settled);
            if actions.contains(&Action::Finish) {
                return self.finish(run);
            }
            self.carry_out(run, actions, &mut events);
            if events.is_empty() {
                return self.pause(run);
            }
        }
    }

    fn more_may_come(&mut self, run: usize) -> bool {
        if self.runs[run].state.stop() != Stop::No {
            return false;
        }
        let Self { store, runs, .. } = self;
        let needs = runs[run].state.waits_for_others();
        let intake = &runs[run].intake;
        let prospects = store.look(|view| {
            if needs { intake.prospects_anywhere(view, false) } else { intake.prospects(view, false) }
        });
        let prospects = prospects.unwrap_or_default();
        if prospects.runs.iter().any(|other| !self.is_alive(other)) {
            self.plan_recovery(run, false);
        }
        if prospects.is_behind {
            self.runs[run].pause_millis = FIRST_PAUSE;
        }
        prospects.more_may_come()
    }

    fn carry_out(&mut self, run: usize, actions: Vec<Action>, events: &mut VecDeque<Event>) {
        for action in actions {
            if !self.lives(run) {
                return;
            }
            match action {
                Action::Commit(commit) => self.submit(run, *commit, events),
                Action::Start(call) => {
                    self.start_tool(run, *call, events);
                    self.crash_perhaps(run);
                }
                Action::Kill(key) => self.kill_tools(run, Some(key)),
                Action::KillAll => self.kill_tools(run, None),
                Action::Find(key, Inquiry { cache, writes }) => {
                    let work = cache.map(|inputs| inputs.work);
                    let asked = Some(writes).filter(|writes| !writes.is_empty());
                    let writes = asked.map(|asked| ResolvedWrites { paths: asked.clone(), asked });
                    let grant = Grant { fingerprint: work.clone(), work, writes };
                    events.push_back(Event::Found(key, grant));
                }
                Action::Finish => {}
            }
        }
    }

    fn crash_perhaps(&mut self, run: usize) {
        if self.rules.crashes && !self.is_quiet && self.random.chance(2) {
            self.crash(run);
        }
    }

    fn submit(&mut self, run: usize, commit: Commit, events: &mut VecDeque<Event>) {
        let mut round = self.runs[run].intake.round(commit);
        if self.has_fault(Fault::PlentyOfAll) {
            let capacities = self.plan.capacities.keys().map(|name| ((*name).to_owned(), 1000)).collect();
            round.rules = Arc::new(RunRules { capacities, ..RunRules::default() });
        }
        self.note(|| format!("run {run} submits {}", short_round(&round)));
        // The fault starts the tools of a decision that is not committed.
        if self.has_fault(Fault::EarlyStart) {
            let request = self.round_request(run, &round);
            let decided = self.store.look(|view| Ok(decide(view, &request.command, &request.context).ok()));
            for call in decided.ok().flatten().map(|decision| decision.answer.started).unwrap_or_default() {
                self.start_tool(run, call, events);
            }
        }
        self.within(8, Happening::Commit { run, round: Box::new(round) });
    }

    fn round_request(&self, run: usize, round: &Round) -> Request {
        let command = Command::Round(Box::new(round.clone()));
        self.request("runner", Some(self.runs[run].id.clone()), command)
    }

    /// Commits a round. The rounds of a dead process are lost with its memory.
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
                self.within(8, Happening::Answer { run, answer, reports });
            }
            Some(Err(refusal)) => self.fail(format!("a round was refused: {refusal}")),
            None => {}
        }
    }

    /// Decides a request and returns the answer without writing the changes.
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
        let this = &mut self.runs[run];
        this.pause += 1;
        let (pause, mut millis) = (this.pause, this.pause_millis);
        if let Some(alarm) = this.state.next_alarm() {
            let left = alarm.timestamp_millis() - self.time().timestamp_millis();
            // Alarms have a resolution below a millisecond, so the poll happens one millisecond after.
            millis = millis.min(u64::try_from(left + 1).unwrap_or(0));
        }
        self.after(millis, Happening::Look { run, pause });
    }

    pub(super) fn look_for_changes(&mut self, run: usize, pause: u64) {
        let this = &self.runs[run];
        if !self.lives(run) || this.pause != pause || this.is_busy || this.is_turn_planned {
            return;
        }
        let revision = self.look(|view| view.revision());
        let mut events = VecDeque::new();
        let now = self.time();
        if self.runs[run].state.next_alarm().is_some_and(|alarm| alarm <= now) {
            events.push_back(Event::Due(now));
        }
        if revision > self.runs[run].intake.seen() {
            let Self { store, runs, .. } = self;
            let taken = store.look(|view| Ok(known(runs[run].intake.take_foreign(view, revision))));
            self.take(run, taken.ok().flatten(), &mut events);
            self.runs[run].pause_millis = FIRST_PAUSE;
        } else {
            let this = &mut self.runs[run];
            this.pause_millis = (this.pause_millis * 2).min(LAST_PAUSE);
        }
        self.handle(run, events);
    }
}

fn short(event: &Event) -> String {
    match event {
        Event::Ready(nodes) => format!("ready {:?}", keys(nodes.iter().map(|node| node.key))),
        Event::Ranked(ranks) => format!("{} new ranks", ranks.len()),
        Event::Ended(report) => {
            let Report { task, call, attempt, .. } = &**report;
            let end = match report.end {
                CallEnd::Succeeded(_) => "well",
                CallEnd::Failed { .. } => "badly",
                CallEnd::Interrupted { .. } => "somehow",
            };
            format!("{task}/{call} ended {end}, attempt {attempt}")
        }
        Event::Committed(written) => {
            let (started, ready) = (
                keys(written.started.iter().map(|call| call.key)),
                keys(written.ready.iter().map(|node| node.key)),
            );
            let needs = &written.needs;
            let paused = keys(written.paused.iter().map(|paused| paused.key));
            format!("committed, to start {started:?}, ready {ready:?}, in need {needs:?}, paused {paused:?}")
        }
        Event::Revoked(key) => format!("{key} is no longer its own"),
        Event::Lost(calls) => format!("{:?} was taken away", keys(calls.iter().map(|call| call.key))),
        Event::Stop => "stop".to_owned(),
        Event::Found(..)
        | Event::OthersWrote
        | Event::Due(_)
        | Event::PlanEnded(_)
        | Event::EndEarly
        | Event::MoreMayCome(_)
        | Event::Settled => format!("{event:?}"),
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
