//! Agents and people: they claim, report, let leases expire, decide, and give commands in between.

use std::time::Duration;

use serde_json::{Value, json};
use taskpawl_model::command::{Answer, Command, NewTask, Refusal, Round};
use taskpawl_model::run::recovery::open_questions;
use taskpawl_model::task::EventKind;
use taskpawl_model::task::{
    BlockedReason, CallSpec, Cause, NewCall, Status, StatusKind, TaskRecord, TaskSpec, TaskStatus, Work,
};
use taskpawl_model::value::Map;
use taskpawl_model::value::{CallId, Key, TaskId};
use taskpawl_model::view::{Query, View, ViewResult};

use super::event::{Held, SimulatedEvent};
use super::living::READ;
use super::report::Fault;
use super::tools::WORK;
use super::world::World;
use crate::{Decision, RandomCall, RandomPlan, Script, Verdict};

/// A call with an unknown outcome.
#[derive(Debug, Clone)]
struct Interrupted {
    task: TaskId,
    /// The outcome if it were started again.
    outcome: Result<Value, String>,
    /// True if a person can report its end: it creates no tasks, and its outcome does not depend on the number of
    /// starts.
    can_be_said: bool,
}

/// A task that waits for an approval.
#[derive(Debug, Clone)]
struct Asked {
    task: TaskId,
    call: Option<CallId>,
}

impl World {
    pub(super) fn agent(&mut self, agent: usize, more: usize) {
        match self.random.below(10) {
            0..=4 => self.claim(agent, None),
            5 => {
                let id = self.some_id();
                self.claim(agent, Some(id));
            }
            6 => {
                self.end_a_manual_task();
            }
            7 => self.touch_held(agent),
            8 => {
                self.decide_a_question();
            }
            _ => {
                self.decide_an_interrupted_task();
            }
        }
        if more > 0 {
            self.within(80, SimulatedEvent::Agent { agent, more: more - 1 });
        }
    }

    fn claim(&mut self, agent: usize, id: Option<String>) {
        let lease = Duration::from_millis(20 + self.random.below_u64(300));
        let actor = actor(agent);
        let Ok(answer) = self.command(
            &actor,
            None,
            Command::Claim {
                id,
                lease,
                capacities: std::collections::BTreeMap::new(),
                writes: std::collections::BTreeMap::new(),
            },
        ) else {
            return;
        };
        let Some(task) = answer.tasks.into_iter().next() else { return };
        let attempt = self.record(&task).map_or(0, |record| record.body.attempt);
        self.note(|| format!("{actor} claims {task}, attempt {attempt}"));
        self.coverage.add("claims by agents");
        self.within(500, SimulatedEvent::AgentReports(Held { agent, task, attempt }));
    }

    /// Renews or releases a task that the agent may or may not hold.
    fn touch_held(&mut self, agent: usize) {
        let held = self.ids(&Query { status: vec![Status::InProgress], ..Query::default() });
        let Some(id) = self.random.one_of(&held).map(ToString::to_string) else { return };
        let command = if self.random.chance(60) {
            Command::Renew { id, lease: Duration::from_millis(200) }
        } else {
            Command::Release { ids: vec![id], note: None }
        };
        if self.command(&actor(agent), None, command).is_ok() {
            self.coverage.add("leases renewed or released");
        }
    }

    /// Lets an agent report, in time or late. A report about an earlier attempt must be refused.
    pub(super) fn agent_reports(&mut self, held: &Held) {
        let Some(before) = self.record(&held.task) else { return };
        let is_stale = before.body.attempt != held.attempt;
        let is_late = is_expired(&before, self.time()) || is_stale;
        let attempt = if self.has_fault(Fault::AnyAttempt) { before.body.attempt } else { held.attempt };
        let (good, result) = self.manual(&held.task);
        let revision = self.look(|view| view.revision());
        let outcome = self.end(&actor(held.agent), &held.task, good, Some(result.clone()), Some(attempt));
        let text = outcome.as_ref().err().map(ToString::to_string);
        self.note(|| format!("{} reports {}, attempt {}: {text:?}", held.agent, held.task, held.attempt));
        self.coverage.add(if is_late { "late reports" } else { "reports in time" });
        if outcome.is_err() {
            self.coverage.add("reports refused");
            return;
        }
        if is_stale {
            self.fail(format!("a report about attempt {} of `{}` was accepted", held.attempt, held.task));
        }
        let kept = self.record(&held.task).and_then(|record| record.body.result.clone());
        if kept.as_ref() != Some(&result) && !self.has_started_over(&held.task, revision) {
            self.fail(format!("the result of `{}` was lost: {kept:?}", held.task));
        }
    }

    /// Returns whether the end of a task let it start over in the same commit: a command by hand may have changed the list that it is
    /// an item of, which opens anew once its items have ended.
    fn has_started_over(&mut self, task: &TaskId, since: u64) -> bool {
        let events = self.look(|view| view.events(since, None, 0));
        self.rules.hands
            && events.iter().filter(|event| event.task.as_ref() == Some(task)).any(|event| {
                matches!(
                    event.kind,
                    EventKind::Status { from: Status::Done | Status::Failed, cause: Cause::Reopen, .. }
                )
            })
    }

    fn end(
        &mut self,
        actor: &str,
        task: &TaskId,
        good: bool,
        result: Option<Value>,
        attempt: Option<u32>,
    ) -> Result<Answer, Box<Refusal>> {
        let (ids, note) = (vec![task.to_string()], None);
        let command = if good {
            Command::Done { ids, result, note, attempt }
        } else {
            Command::Fail { ids, result, note, attempt }
        };
        self.command(actor, None, command)
    }

    /// Ends one of the ready manual tasks; false if there is none.
    pub(super) fn end_a_manual_task(&mut self) -> bool {
        let ready = self.ids(&Query { ready: Some(vec![Work::Manual]), ..Query::default() });
        let Some(task) = self.random.one_of(&ready).cloned() else { return false };
        let (good, result) = self.manual(&task);
        self.note(|| format!("somebody ends {task}, well: {good}"));
        if let Err(refusal) = self.end("person", &task, good, Some(result), None) {
            self.fail(format!("`{task}` was ready and could not be ended: {refusal}"));
        }
        true
    }

    /// Reports the end of an interrupted call, or starts it again; false if there is none.
    pub(super) fn decide_an_interrupted_task(&mut self) -> bool {
        let interrupted = self.look(interrupted);
        let Some(Interrupted { task, outcome, can_be_said }) = self.random.one_of(&interrupted).cloned()
        else {
            return false;
        };
        self.coverage.add("interruptions decided");
        let good = outcome.is_ok();
        let decided = if !can_be_said || self.random.chance(50) {
            self.command("person", None, Command::Unblock { ids: vec![task.to_string()] })
        } else {
            self.end("person", &task, good, outcome.ok(), None)
        };
        let text = decided.as_ref().err().map(ToString::to_string);
        self.note(|| format!("somebody decides {task}, well: {good}: {text:?}"));
        if let Some(refusal) = text {
            self.fail(format!("`{task}` was interrupted, and nobody could decide: {refusal}"));
        }
        true
    }

    /// Decides about one of the pending requests as scripted; false if none has a verdict.
    pub(super) fn decide_a_question(&mut self) -> bool {
        let mut asked = self.look(asked);
        asked.retain(|asked| self.verdict(asked) != Verdict::Expired);
        let Some(asked) = self.random.one_of(&asked).cloned() else { return false };
        self.decide(&asked);
        true
    }

    /// Decides the question of a task, unless it is to expire or is gone.
    pub(super) fn decide_the_question_of(&mut self, key: Key) {
        let asked = self.look(|view| {
            let id = view.id(key)?;
            Ok(asked(view)?.into_iter().find(|asked| Some(&asked.task) == id.as_ref()))
        });
        if let Some(asked) = asked.filter(|asked| self.verdict(asked) != Verdict::Expired) {
            self.decide(&asked);
        }
    }

    fn decide(&mut self, asked: &Asked) {
        let ids = vec![asked.task.to_string()];
        let command = match self.verdict(asked) {
            Verdict::Granted(answer) => {
                let answer = self.is_question(asked).then(|| json!(answer));
                Command::Approve { ids, answer, args: None, hash: None }
            }
            Verdict::Rejected | Verdict::Expired => Command::Reject { ids, reason: None, rework: None },
        };
        self.coverage.add("questions decided");
        self.note(|| format!("somebody decides the question of {}", asked.task));
        let mut decided = self.command("person", None, command);
        // An item that was moved to another list asks what that list asks, which its own script does not say.
        if let (Err(refusal), Verdict::Granted(answer)) = (&decided, self.verdict(asked))
            && let Refusal::WrongAnswer { options, .. } = &**refusal
            && options.iter().any(|option| option == answer)
        {
            let ids = vec![asked.task.to_string()];
            let command = Command::Approve { ids, answer: Some(json!(answer)), args: None, hash: None };
            decided = self.command("person", None, command);
        }
        if let Err(refusal) = decided {
            self.fail(format!("`{}` asks, and nobody could decide: {refusal}", asked.task));
        }
    }

    /// Returns whether any task waits for an approval.
    pub(super) fn is_asked(&mut self) -> bool {
        !self.look(asked).is_empty()
    }

    fn decision(&self, asked: &Asked) -> Option<&Decision> {
        let task = self.plan.task(asked.task.as_str())?;
        match &asked.call {
            Some(call) => task.calls().get(call.as_str().get(1..)?.parse::<usize>().ok()?)?.approval.as_ref(),
            None => task.approval.as_ref(),
        }
    }

    fn verdict(&self, asked: &Asked) -> Verdict {
        self.decision(asked).map_or(Verdict::Granted("red"), |decision| decision.verdict)
    }

    fn is_question(&self, asked: &Asked) -> bool {
        self.decision(asked).is_some_and(|decision| decision.is_question)
    }

    /// Returns the scripted end of a manual task.
    fn manual(&self, task: &TaskId) -> (bool, Value) {
        match self.plan.task(task.as_str()).map(|task| &task.script) {
            Some(Script::Manual { good, value }) => (*good, value.clone()),
            Some(Script::Calls { .. } | Script::Milestone) | None => (true, json!("done")),
        }
    }

    pub(super) fn record(&mut self, task: &TaskId) -> Option<TaskRecord> {
        self.look(|view| match view.key(task.as_str())? {
            Some(key) => view.task(key),
            None => Ok(None),
        })
    }

    fn ids(&mut self, query: &Query) -> Vec<TaskId> {
        self.look(|view| {
            let ids =
                view.find(query)?.into_iter().map(|key| view.id(key)).collect::<ViewResult<Vec<_>>>()?;
            Ok(ids.into_iter().flatten().collect())
        })
    }

    fn some_id(&mut self) -> String {
        let ids = self.ids(&Query::default());
        self.random.one_of(&ids).map_or_else(|| "t0".to_owned(), ToString::to_string)
    }

    /// Executes a command of a person that changes the outcome of the plan.
    pub(super) fn hand(&mut self, more: usize) {
        let command = self.command_by_hand();
        let (text, is_cancel) = (format!("{command:?}"), matches!(command, Command::Cancel { .. }));
        match self.command("person", None, command) {
            Ok(answer) => {
                self.coverage.add("commands by hand");
                self.retry_what_was_cancelled(is_cancel, &answer);
            }
            Err(refusal) => {
                self.coverage.add("commands by hand refused");
                self.note(|| format!("refused: {refusal}"));
            }
        }
        self.note(|| format!("by hand: {text}"));
        if self.random.chance(25) {
            self.check_all();
        }
        if more > 0 {
            self.within(40, SimulatedEvent::Hand { more: more - 1 });
        }
    }

    /// Sometimes restarts cancelled tasks at once, while tools of the last attempt may still be running.
    fn retry_what_was_cancelled(&mut self, is_cancel: bool, cancelled: &Answer) {
        if !is_cancel || !self.random.chance(50) {
            return;
        }
        if self.has_fault(Fault::ForgottenEnding) {
            self.forget_ending();
        }
        let ids = cancelled.tasks.iter().map(ToString::to_string).collect();
        match self.command("person", None, Command::Retry { ids, cascade: true }).map_err(|refusal| *refusal)
        {
            Ok(_) => self.coverage.add("cancelled and retried at once"),
            Err(Refusal::StillEnding { .. }) => self.coverage.add("retries refused while calls end"),
            Err(_) => {}
        }
    }

    fn forget_ending(&mut self) {
        for run in self.look(|view| view.open_runs()) {
            for (task, taken) in run.ending {
                let key = self.look(|view| view.key(task.as_str()));
                let releases = key.map(|key| (key, taken.attempt)).into_iter().collect();
                let round = Round { releases, ..Round::default() };
                // Rounds are never refused.
                let _ = self.command("runner", Some(run.id.clone()), Command::Round(Box::new(round)));
            }
        }
    }

    fn command_by_hand(&mut self) -> Command {
        let (id, other) = (self.some_id(), self.some_id());
        let ids = vec![id.clone()];
        let cascade = self.random.chance(50);
        match self.random.below(20) {
            0..=2 => Command::Cancel { ids: self.held_or(id), reason: None },
            3..=5 => Command::Retry { ids: self.finished_or(id), cascade },
            6 | 7 => Command::Reopen { ids: self.finished_or(id), cascade },
            8 | 9 => Command::Skip { ids, reason: None },
            10 => Command::Block { ids, reason: "wait".to_owned() },
            11 | 12 => Command::Unblock { ids },
            13 => Command::AddDependency { id, on: other },
            14 => Command::RemoveDependency { id, on: other },
            15 => Command::Delete { ids },
            16 => Command::Move { id, parent: self.random.chance(70).then_some(other) },
            17 => Command::AddCall { id, call: Box::new(self.new_call()) },
            18 => Command::Update {
                id,
                fields: Map::from_iter([("priority".to_owned(), json!("high"))]),
                if_version: None,
                restart: None,
            },
            _ => Command::Create(Box::new(self.new_task(id, other))),
        }
    }

    /// Prefers a task in progress, because cancelling a running task is the hard case.
    fn held_or(&mut self, id: String) -> Vec<String> {
        let held = self.ids(&Query { status: vec![Status::InProgress], ..Query::default() });
        vec![self.random.one_of(&held).map_or(id, ToString::to_string)]
    }

    fn finished_or(&mut self, id: String) -> Vec<String> {
        let status = vec![Status::Done, Status::Failed, Status::Cancelled, Status::Skipped];
        let finished = self.ids(&Query { status, ..Query::default() });
        vec![self.random.one_of(&finished).map_or(id, ToString::to_string)]
    }

    fn new_call(&mut self) -> NewCall {
        let tool_name = if self.random.chance(50) { WORK } else { READ }.to_owned();
        let mut spec = CallSpec { tool_name, ..CallSpec::default() };
        let fails = if self.random.chance(80) { 0 } else { RandomCall::ALWAYS };
        spec.args.insert("fails".to_owned(), json!(fails));
        NewCall { id: None, spec: spec.into() }
    }

    fn new_task(&mut self, parent: String, on: String) -> NewTask {
        let id = RandomPlan::id(100 + self.random.below(1000));
        NewTask {
            spec: TaskSpec { name: id.to_string(), ..TaskSpec::default() },
            id,
            calls: if self.random.chance(70) { vec![self.new_call()] } else { Vec::new() },
            dependencies: if self.random.chance(60) { vec![on] } else { Vec::new() },
            parent: self.random.chance(40).then_some(parent),
            ..NewTask::default()
        }
    }
}

fn actor(agent: usize) -> String {
    format!("agent{agent}")
}

fn is_expired(record: &TaskRecord, now: taskpawl_model::value::Timestamp) -> bool {
    matches!(&record.body.state, TaskStatus::InProgress { claim } if claim.is_expired(now))
}

fn interrupted(view: &dyn View) -> ViewResult<Vec<Interrupted>> {
    let mut found = Vec::new();
    for key in view.find(&Query { status: vec![Status::Blocked], ..Query::default() })? {
        if view.node(key)?.is_none_or(|node| node.status_kind != StatusKind::BlockedOther) {
            continue;
        }
        let Some(task) = view.task(key)? else { continue };
        if let Some(BlockedReason::Interrupted { call }) = task.body.state.blocked_reason() {
            found.extend(interrupted_call(view, key, &task, call)?);
        }
    }
    Ok(found)
}

fn interrupted_call(
    view: &dyn View,
    key: Key,
    task: &TaskRecord,
    call: &CallId,
) -> ViewResult<Option<Interrupted>> {
    let calls = view.calls(key)?;
    let Some(call) = calls.iter().find(|other| other.id == *call) else { return Ok(None) };
    let args = Value::Object(call.body.args.clone().unwrap_or_else(|| call.spec.args.clone()));
    let outcome = RandomCall::play(&args, task.body.progress.round, call.body.failures);
    let fails_always = RandomCall::play(&args, 0, RandomCall::ALWAYS - 1).is_err();
    let can_be_said = !call.spec.emit && (outcome.is_ok() || fails_always);
    Ok(Some(Interrupted { task: task.id.clone(), outcome, can_be_said }))
}

fn asked(view: &dyn View) -> ViewResult<Vec<Asked>> {
    let mut found = Vec::new();
    for (key, _) in open_questions(view)? {
        let Some(task) = view.task(key)? else { continue };
        if let Some(BlockedReason::Approval { call, .. }) = task.body.state.blocked_reason() {
            found.push(Asked { call: call.clone(), task: task.id });
        }
    }
    Ok(found)
}
