//! Reference: commands of runs, such as claims and reports.

use std::collections::BTreeSet;

use taskpawl_model::command::{CallEnd, Command, Context, Report, Round};
use taskpawl_model::task::CallStatus;

use super::items::{Flaw, Holder, Reference, Stand, Taken, Verdict, Work, require};

impl Reference {
    pub(super) fn carry_out_of_run(&mut self, command: &Command, context: &Context) -> Taken {
        match command {
            Command::StartRun(start) => {
                let run = &start.run;
                self.runs.insert(run.id.to_string(), true);
                self.ending.retain(|(other, ..)| other != run.id.as_str());
                Some(())
            }
            Command::FinishRun { id, .. } | Command::CloseRun { id } => {
                *self.runs.get_mut(id.as_str())? = false;
                self.ending.retain(|(other, ..)| other != id.as_str());
                Some(())
            }
            Command::Round(round) => {
                self.round(round, context);
                Some(())
            }
            Command::Report(report) => self.report(report, context),
            Command::RunOne { id, missing_tool } => self.run_one(id, missing_tool.is_some()),
            Command::ReturnExpired { tasks } => {
                for key in tasks.iter().filter(|key| self.items.contains_key(&key.0)).collect::<Vec<_>>() {
                    self.return_expired(key.0);
                }
                Some(())
            }
            Command::ToolsKnown { tasks } => {
                for key in tasks {
                    if let Some(item) = self.items.get_mut(&key.0)
                        && item.stand == Stand::BlockedForATool
                    {
                        item.stand = Stand::Todo;
                    }
                }
                Some(())
            }
            Command::Settle => Some(()),
            _ => None,
        }
    }

    /// Executes a round. Outdated reports and releases are ignored.
    fn round(&mut self, round: &Round, context: &Context) {
        for report in &round.reports {
            let _ = self.report(report, context);
        }
        for (key, attempt) in &round.releases {
            let _ = self.give_back(key.0, *attempt, context);
        }
        self.settle();
        // Only tasks that are ready before the first claim count. A claim may make others ready, because a task without
        // remaining calls ends at once.
        let ready: BTreeSet<u32> = self.keys().into_iter().filter(|key| self.is_ready(*key)).collect();
        for key in round.claims.iter().filter(|key| ready.contains(&key.0)) {
            let _ = self.claim_for_run(key.0, round, context);
        }
    }

    fn claim_for_run(&mut self, key: u32, round: &Round, context: &Context) -> Taken {
        require(self.item(key).stand == Stand::Todo && self.work(key) == Work::Calls)?;
        let mut left = self.item(key).calls.iter().filter(|call| !call.is_settled());
        require(left.all(|call| round.tools.contains(&call.tool)))?;
        let item = self.change(key);
        item.attempt += 1;
        item.stand = Stand::Held(Holder::Run(run_of(context)));
        self.start_next(key);
        Some(())
    }

    fn start_next(&mut self, key: u32) {
        let item = self.change(key);
        let is_parallel = item.is_parallel;
        let left = item.calls.iter_mut().filter(|call| !call.is_settled());
        let mut has_started = false;
        for call in left.take(if is_parallel { usize::MAX } else { 1 }) {
            call.status = CallStatus::Running;
            has_started = true;
        }
        if !has_started {
            item.stand = Stand::Done;
        }
    }

    fn check_attempt(&self, key: u32, attempt: u32, context: &Context) -> Taken {
        let item = self.items.get(&key)?;
        let is_mine = |holder: &Holder| *holder == Holder::Run(run_of(context));
        require(matches!(&item.stand, Stand::Held(holder) if is_mine(holder)))?;
        require(item.attempt == attempt || self.has(Flaw::AnyAttempt))
    }

    fn report(&mut self, report: &Report, context: &Context) -> Taken {
        let key = report.task.0;
        let end = (run_of(context), key, report.attempt, report.call.to_string());
        if self.ending.remove(&end) {
            return Some(());
        }
        self.check_attempt(key, report.attempt, context)?;
        let mut calls = self.change(key).calls.iter_mut();
        let call = calls.find(|call| call.id == report.call.as_str())?;
        require(call.status == CallStatus::Running)?;
        call.status = match report.end {
            CallEnd::Succeeded(_) => CallStatus::Succeeded,
            CallEnd::Failed { .. } => CallStatus::Failed,
            // The reference draws no questions of tools: their tests are in `taskpawl`.
            CallEnd::Interrupted { repeatable: true, .. } | CallEnd::Asks(_) => CallStatus::Pending,
            CallEnd::Interrupted { repeatable: false, .. } => CallStatus::Interrupted,
        };
        self.after_calls(key, report.go_on);
        Some(())
    }

    fn give_back(&mut self, key: u32, attempt: u32, context: &Context) -> Taken {
        let (run, before) = (run_of(context), self.ending.len());
        self.ending.retain(|(other, task, past, _)| (other, *task, *past) != (&run, key, attempt));
        if self.ending.len() < before {
            return Some(());
        }
        self.check_attempt(key, attempt, context)?;
        for call in self.change(key).calls.iter_mut().filter(|call| call.status == CallStatus::Running) {
            call.status = CallStatus::Pending;
        }
        self.after_calls(key, false);
        Some(())
    }

    fn after_calls(&mut self, key: u32, go_on: bool) {
        let item = self.change(key);
        let find = |status| item.calls.iter().find(|call| call.status == status);
        if find(CallStatus::Running).is_some() {
            let is_stopped = find(CallStatus::Failed).is_some() || find(CallStatus::Interrupted).is_some();
            // An interrupted parallel call that is repeatable is started again, beside the others.
            if go_on && !is_stopped {
                self.start_next(key);
            }
            return;
        }
        if let Some(call) = find(CallStatus::Interrupted) {
            item.stand = Stand::BlockedByInterruption(call.id.clone());
        } else if find(CallStatus::Failed).is_some() {
            item.stand = Stand::Failed;
        } else if go_on || item.calls.iter().all(super::items::Call::is_settled) {
            self.start_next(key);
        } else {
            item.stand = Stand::Todo;
        }
    }

    fn run_one(&mut self, id: &str, misses_a_tool: bool) -> Taken {
        let key = self.find(id)?;
        match self.item(key).stand {
            Stand::BlockedUntilFinished | Stand::BlockedForATool => return Some(()),
            Stand::Todo => {}
            _ => return None,
        }
        require(self.work(key) != Work::Hand)?;
        if self.verdict_before_subtasks(key) == Verdict::Wait {
            self.change(key).stand = Stand::BlockedUntilFinished;
        } else if misses_a_tool {
            self.change(key).stand = Stand::BlockedForATool;
        }
        Some(())
    }
}

fn run_of(context: &Context) -> String {
    context.run.as_ref().map(ToString::to_string).unwrap_or_default()
}
