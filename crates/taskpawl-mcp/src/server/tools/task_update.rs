use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use taskpawl::model::command::{Refusal, Restart};
use taskpawl::model::task::{Status, Task};
use taskpawl::model::value::Period;
use taskpawl::{Ending, Error, Manager};

use super::definition::{Definition, WRITES, number, schema, switch, text};
use super::plan_write::{check_calls, warnings_of_calls};
use super::ready_list::claimed;
use crate::server::actions::Action as Next;
use crate::server::announced::announced;
use crate::server::answer::Answer;
use crate::server::arguments;
use crate::server::brief;
use crate::server::caller::Caller;
use crate::server::core::TASK_ACTIONS;
use crate::server::needs::with_needs;
use crate::server::options::{Offer, ServerOptions};
use crate::server::refusal::Refused;

/// Values of `action` for a worker.
const ACTIONS_OF_WORK: [&str; 5] = ["claim", "renew", "release", "done", "fail"];

pub(super) fn definition(offer: Offer) -> Definition {
    match offer {
        Offer::All => definition_of_all(),
        Offer::Work => Definition {
            description: "Your task: claim (ttl: 2h), renew, release; done or fail with result and note; next claims another. A note alone is kept.",
            input: schema(
                json!({
                    "id": text(), "action": {"enum": ACTIONS_OF_WORK}, "result": {}, "note": text(),
                    "attempt": number(), "ttl": text(), "next": switch(),
                }),
                &["id"],
                true,
            ),
            hints: WRITES,
        },
    }
}

fn definition_of_all() -> Definition {
    Definition {
        description: "Changes fields, note or state. claim (ttl: 2h) keeps others away; done and fail end work by hand, with next they claim the next task. After a failure: retry (or reopen, which forgets all results) with fields {run: the fixed command}. cascade: also what ran after. signal ends a wait, with result.",
        input: schema(
            json!({
                "id": text(),
                "action": {"enum": TASK_ACTIONS},
                "result": {}, "note": text(),
                "fields": {"type": "object", "description": "run | call | calls, needs, when, forEach, name, priority, dueDate, labels, context …; null clears"},
                "attempt": number(), "if_version": number(), "ttl": text(), "cascade": switch(),
                "next": switch(), "signal": text(),
            }),
            &["id"],
            true,
        ),
        hints: super::definition::Hints { destroys: true, ..WRITES },
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    id: String,
    #[serde(default)]
    action: Option<Action>,
    #[serde(default)]
    result: Option<Value>,
    #[serde(default)]
    note: Option<String>,
    #[serde(default)]
    fields: Map<String, Value>,
    #[serde(default)]
    attempt: Option<u32>,
    #[serde(default)]
    if_version: Option<u64>,
    #[serde(default)]
    ttl: Option<Period>,
    #[serde(default)]
    cascade: bool,
    #[serde(default)]
    next: bool,
    #[serde(default)]
    signal: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Claim,
    Renew,
    Release,
    Done,
    Fail,
    Retry,
    Reopen,
    Cancel,
    Skip,
    Signal,
}

/// Checks the arguments of a call.
pub(super) fn check_arguments(given: Map<String, Value>) -> Result<(), Refused> {
    checked(given).map(drop)
}

fn checked(given: Map<String, Value>) -> Result<Arguments, Refused> {
    let arguments: Arguments = arguments::read(given.clone())?;
    arguments.check().map_err(|(name, problem)| {
        let refused = Refused::argument(name, problem);
        let mut corrected = given;
        let Some(_) = corrected.remove(name) else { return refused };
        refused.corrected(Next::call("task_update", Value::Object(corrected)))
    })?;
    Ok(arguments)
}

pub(super) fn call(
    caller: &Caller,
    options: &ServerOptions,
    arguments: Map<String, Value>,
) -> Result<Answer, Refused> {
    let given = arguments.clone();
    let arguments = checked(arguments)?;
    if options.offer == Offer::Work {
        arguments.check_work()?;
    }
    let id = caller.reads().get(&arguments.id)?.id.to_string();
    let manager = caller.manager().with_capacities(options.run.resources.clone());
    let calls = manager.calls_of_update(&id, &arguments.fields)?;
    let brought = caller.reads().brought_tools(None, Some(&id))?;
    check_calls(caller, options, &brought, calls.iter().map(|call| (id.clone(), call)))?;
    // The order never changes: a repeated request continues after the last part that was recorded.
    let fields = arguments.fields.clone();
    let updated = match (fields.is_empty(), arguments.restart()) {
        (true, _) => Ok(()),
        (false, Some(restart)) => {
            manager.update_and_restart(&id, fields, arguments.if_version, restart).map(drop)
        }
        (false, None) => manager.update(&id, fields, arguments.if_version).map(drop),
    };
    updated.map_err(|error| at_current_version(error, given))?;
    match arguments.action {
        Some(Action::Retry | Action::Reopen) if !arguments.fields.is_empty() => {}
        Some(Action::Signal) => arguments.send(caller.reads(), &manager, options, &id)?,
        Some(action) => arguments.act(&manager, &id, action, options.lease)?,
        None => {
            if let Some(note) = &arguments.note {
                manager.note(&id, note)?;
            }
        }
    }
    let task = caller.reads().get(&id)?;
    let warnings = warnings_of_calls(caller, &calls);
    let mut answer = Answer::new(json!({"task": brief::task(&task)})).with("warnings", json!(warnings));
    if !calls.is_empty() {
        let id = std::slice::from_ref(&task.id);
        answer = answer.with("asks", announced(caller, id, task.plan.as_deref())?);
    }
    let whole = Next::call("task_get", json!({"id": id}));
    if arguments.next {
        return claim_next(answer, caller.reads(), &manager, options.lease);
    }
    let answer = match arguments.action {
        Some(Action::Claim) => with_needs(answer, caller.reads(), &task)?,
        _ => answer,
    };
    let renew = (arguments.action == Some(Action::Claim))
        .then(|| Next::call("task_update", json!({"id": id, "action": "renew"})));
    Ok(answer.next(next(&task, arguments.action)).next(renew).rest(whole))
}

/// Adds the next task, claimed. The report before it counts also if there is none.
fn claim_next(
    answer: Answer,
    reads: &Manager,
    manager: &Manager,
    lease: Duration,
) -> Result<Answer, Refused> {
    match manager.claim_next(lease) {
        Ok(id) => Ok(claimed(answer, reads, &id)?),
        Err(Error::Refused(refusal)) => {
            let why = refusal.to_string();
            Ok(answer.with("notClaimed", json!(why)).next([Next::call("ready_list", json!({}))]))
        }
        Err(error) => Err(error.into()),
    }
}

/// Adds the call for the version that a task has by now to the refusal of another one.
fn at_current_version(error: Error, mut given: Map<String, Value>) -> Refused {
    let current = if let Error::Refused(refusal) = &error
        && let Refusal::VersionMismatch { current, .. } = **refusal
    {
        current
    } else {
        return error.into();
    };
    let refused = Refused::from(error);
    given.insert("if_version".to_owned(), json!(current));
    refused.corrected(Next::call("task_update", Value::Object(given)))
}

impl Arguments {
    /// Refuses arguments without effect, so that callers do not believe they had one.
    fn check(&self) -> Result<(), (&'static str, &'static str)> {
        let ends = matches!(self.action, Some(Action::Done | Action::Fail));
        let claims = matches!(self.action, Some(Action::Claim | Action::Renew));
        let again = matches!(self.action, Some(Action::Retry | Action::Reopen));
        let signals = self.action == Some(Action::Signal);
        let useless = [
            (
                "result",
                self.result.is_some() && !(ends || signals),
                "it goes with the actions done, fail and signal",
            ),
            ("signal", self.signal.is_some() && !signals, "it goes with the action signal"),
            ("attempt", self.attempt.is_some() && !ends, "it goes with the actions done and fail"),
            ("ttl", self.ttl.is_some() && !claims, "it goes with the actions claim and renew"),
            ("next", self.next && !ends, "it goes with the actions done and fail"),
            ("cascade", self.cascade && !again, "it goes with the actions retry and reopen"),
            ("if_version", self.if_version.is_some() && self.fields.is_empty(), "it goes with fields"),
            ("note", self.note.is_some() && again, "this action takes no note: add it in a call of its own"),
            (
                "action",
                self.action.is_none() && self.note.is_none() && self.fields.is_empty(),
                "there is nothing to change: give action, fields or note",
            ),
        ];
        match useless.into_iter().find(|(_, is_useless, _)| *is_useless) {
            Some((name, _, problem)) => Err((name, problem)),
            None => Ok(()),
        }
    }

    /// Refuses what changes the plan, on a server for workers.
    fn check_work(&self) -> Result<(), Refused> {
        let is_work = self.action.is_none_or(|action| match action {
            Action::Claim | Action::Renew | Action::Release | Action::Done | Action::Fail => true,
            Action::Retry | Action::Reopen | Action::Cancel | Action::Skip | Action::Signal => false,
        });
        match (is_work, self.fields.is_empty()) {
            (true, true) => Ok(()),
            (false, _) => {
                Err(Refused::argument("action", format!("here there are {}", ACTIONS_OF_WORK.join(", "))))
            }
            (true, false) => {
                Err(Refused::argument("fields", "this server takes reports; the plan is changed elsewhere"))
            }
        }
    }

    /// Returns how the new fields start the task over.
    fn restart(&self) -> Option<Restart> {
        let cascade = self.cascade;
        match self.action? {
            Action::Retry => Some(Restart::Retry { cascade }),
            Action::Reopen => Some(Restart::Reopen { cascade }),
            Action::Claim
            | Action::Renew
            | Action::Release
            | Action::Done
            | Action::Fail
            | Action::Cancel
            | Action::Skip
            | Action::Signal => None,
        }
    }

    /// Sends a signal to the task: the one that it waits for, unless the call names another.
    fn send(
        &self,
        reads: &Manager,
        manager: &Manager,
        options: &ServerOptions,
        id: &str,
    ) -> Result<(), Refused> {
        if options.refuses_signals {
            return Err(Refused::argument("action", "the policy of this machine leaves signals to people"));
        }
        let wait = reads.get(id)?.progress.waiting_for.unwrap_or_default();
        let mut awaited: Vec<&str> = wait.signals().collect();
        awaited.dedup();
        let name = match (&self.signal, awaited.as_slice()) {
            (Some(name), _) => name,
            (None, [only]) => *only,
            (None, []) => {
                return Err(Refused::argument(
                    "signal",
                    "the task waits for no signal: name the one to send",
                ));
            }
            (None, _) => {
                return Err(Refused::argument("signal", "the task waits for several: name the one to send"));
            }
        };
        manager.signal(name, self.result.clone().unwrap_or_default(), Some(id))?;
        if let Some(note) = &self.note {
            manager.note(id, note)?;
        }
        Ok(())
    }

    fn act(&self, manager: &Manager, id: &str, action: Action, lease: Duration) -> Result<(), Refused> {
        let (ids, note) = ([id.to_owned()], self.note.clone());
        let lease = self.ttl.map_or(lease, |ttl| ttl.0);
        let ending = Ending { result: self.result.clone(), note: note.clone(), attempt: self.attempt };
        match action {
            Action::Claim => drop(manager.claim(id, lease)?),
            Action::Renew => drop(manager.renew(id, lease)?),
            Action::Release => drop(match &note {
                Some(note) => manager.release_with_note(&ids, note)?,
                None => manager.release(&ids)?,
            }),
            Action::Done => drop(manager.done(&ids, ending)?),
            Action::Fail => drop(manager.fail(&ids, ending)?),
            Action::Retry => drop(manager.retry(&ids, self.cascade)?),
            Action::Reopen => drop(manager.reopen(&ids, self.cascade)?),
            Action::Cancel => drop(manager.cancel(&ids, note)?),
            Action::Skip => drop(manager.skip(&ids, note)?),
            Action::Signal => {}
        }
        if let Some(note) = self.note.as_ref().filter(|_| matches!(action, Action::Claim | Action::Renew)) {
            manager.note(id, note)?;
        }
        Ok(())
    }
}

/// Returns the step that usually follows.
fn next(task: &Task, action: Option<Action>) -> Option<Next> {
    let has_calls = !task.metadata.tool_calls.is_empty();
    match (action?, task.status) {
        (Action::Claim | Action::Renew, Status::InProgress) => {
            Some(Next::call("task_update", json!({"id": task.id, "action": "done", "attempt": task.attempt})))
        }
        (Action::Retry | Action::Reopen, Status::Todo) if has_calls => {
            Some(Next::call("run_ready", json!({"only": [task.id]})))
        }
        (Action::Done | Action::Fail | Action::Skip | Action::Cancel | Action::Release, _) => {
            Some(Next::call("ready_list", json!({})))
        }
        _ => None,
    }
}
