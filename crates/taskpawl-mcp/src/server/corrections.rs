//! Corrected calls are checked before they are offered: one that is refused for its own arguments keeps a model in a loop.

use taskpawl::Taskpawl;

use super::actions::Action;
use super::core::Core;
use super::options::ServerOptions;
use super::reading::{FOR_ALL, Reading};
use super::refusal::Refused;

/// Corrections that are followed. Each removes one fault of the arguments.
const MAX_STEPS: usize = 8;

/// Returns the refusal with a corrected call whose arguments are accepted, or without one. Blocks.
pub(super) fn with_accepted(refused: Refused, plans: &Taskpawl) -> Refused {
    let Refused::Corrected { refused, call } = refused else { return refused };
    match accepted(call, plans) {
        Some(call) => Refused::Corrected { refused, call },
        None => *refused,
    }
}

fn accepted(mut call: Action, plans: &Taskpawl) -> Option<Action> {
    for _ in 0..MAX_STEPS {
        match check(&call, plans) {
            Ok(()) => return Some(call),
            Err(Refused::Corrected { call: next, .. }) if next != call && next.is_same_tool(&call) => {
                call = next;
            }
            Err(_) => return None,
        }
    }
    None
}

/// Checks the arguments of a call as the call itself would, without an effect.
fn check(call: &Action, plans: &Taskpawl) -> Result<(), Refused> {
    let Action::Call { tool, arguments } = call else { return Ok(()) };
    let Some(tool) = Core::of_name(tool) else { return Ok(()) };
    let mut arguments = arguments.clone();
    let schema = tool.definition(&ServerOptions::default()).input_schema;
    Reading::new(plans.manager(), plans.engine().tools()).read(tool, &schema, &mut arguments)?;
    arguments.retain(|name, _| !FOR_ALL.contains(&name.as_str()));
    tool.check(arguments)
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};
    use taskpawl::{SandboxSettings, Taskpawl};

    use super::*;
    use crate::server::caller::Caller;

    fn plans() -> Taskpawl {
        let plans = Taskpawl::builder(":memory:").sandbox(SandboxSettings::off()).open().unwrap();
        plans
            .blocking()
            .apply_text("{name: p, tasks: [{id: alpha}, {id: beta, needs: alpha}]}", "p")
            .unwrap();
        plans
    }

    /// Makes a call like the handler, and returns the corrected call of its refusal.
    fn correction(plans: &Taskpawl, call: &Action) -> Option<Action> {
        let Action::Call { tool, arguments } = call else { return None };
        let (options, mut arguments) = (ServerOptions::default(), arguments.clone());
        let tool = Core::of_name(tool)?;
        let mut answer = || {
            let schema = tool.definition(&options).input_schema;
            Reading::new(plans.manager(), plans.engine().tools()).read(tool, &schema, &mut arguments)?;
            let caller = Caller::of(plans, &options, tool.name(), &mut arguments)?;
            let arguments = std::mem::take(&mut arguments);
            if tool == Core::RunReady {
                tool.check(arguments)
            } else {
                tool.call(&caller, &options, arguments).map(drop)
            }
        };
        let refused = with_accepted(answer().err()?, plans);
        if let Refused::Corrected { call, .. } = refused { Some(call) } else { None }
    }

    /// Returns the call with each of its arguments replaced, removed or misspelt, and with one more.
    fn faulty(arguments: &Map<String, Value>) -> Vec<Map<String, Value>> {
        let mut all = Vec::new();
        for (name, value) in arguments {
            for other in
                [json!(""), json!(null), json!([]), json!({}), json!(["alpha", "beta"]), json!("alfa")]
            {
                let mut faulty = arguments.clone();
                faulty.insert(name.clone(), other);
                all.push(faulty);
            }
            let mut without = arguments.clone();
            without.remove(name);
            all.push(without.clone());
            without.insert(format!("{name}x"), value.clone());
            all.push(without);
        }
        for more in ["name", "fields", "action", "signal", "ttl", "result", "nonsense"] {
            for value in [json!(""), json!({"name": ""})] {
                let mut faulty = arguments.clone();
                faulty.insert(more.to_owned(), value);
                all.push(faulty);
            }
        }
        all
    }

    #[test]
    fn no_correction_does_more_than_was_meant() {
        for (tool, arguments) in
            [("task_delete", json!({"ids": ["beta"]})), ("run_ready", json!({"only": ["beta"]}))]
        {
            let corrected_with = |name: &str| {
                let mut arguments = arguments.clone();
                arguments[name] = json!(true);
                correction(&plans(), &Action::call(tool, arguments))
            };
            for name in ["dryRun", "dry_run", "preview", "confirm", "if_unchanged", "maxTasks"] {
                assert_eq!(corrected_with(name), None, "{tool} {name}");
            }
            assert!(corrected_with("reason").is_some(), "{tool}");
        }
    }

    #[test]
    fn no_correction_loses_what_a_call_was_to_do() {
        for (tool, arguments) in [
            ("task_add", json!({"name": "n", "run": "true", "requires_approval": true})),
            ("task_add", json!({"name": "n", "run": "true", "only_on": "main"})),
            ("task_update", json!({"id": "alpha", "action": "fail", "stack": "a trace"})),
            ("plan_write", json!({"plan": {"name": "p", "tasks": [{"id": "alpha"}]}, "mode": "merge"})),
        ] {
            assert_eq!(correction(&plans(), &Action::call(tool, arguments.clone())), None, "{arguments}");
        }
        let read = |arguments: Value| {
            let call = Action::call("task_add", arguments);
            correction(&plans(), &call).map(|call| call.to_json()["arguments"].clone())
        };
        let otherwise = json!({"name": "n", "run": "true", "condition": "false"});
        assert_eq!(read(otherwise), Some(json!({"name": "n", "run": "true", "when": "false"})));
        let twice = json!({"name": "n", "needs": ["alpho"], "dueDate": "tomorrow"});
        assert_eq!(read(twice), Some(json!({"name": "n", "needs": ["alpha"]})));
    }

    #[test]
    fn no_correction_changes_a_task_that_was_not_named() {
        let look = Action::call("task_get", json!({"id": "alpha"}));
        for (tool, arguments) in [
            ("task_delete", json!({"ids": ["alpho"]})),
            ("task_update", json!({"id": "alpho", "action": "done"})),
            ("task_update", json!({"id": "alpho", "fields": {"name": "x"}})),
        ] {
            assert_eq!(correction(&plans(), &Action::call(tool, arguments)), Some(look.clone()), "{tool}");
        }
        let plans = plans();
        plans.blocking().apply_text("{name: q, tasks: [{id: t1}, {id: t2}]}", "q").unwrap();
        for (tool, arguments) in [
            ("task_get", json!({"id": "t9"})),
            ("task_add", json!({"name": "n", "run": "x", "needs": ["t9"]})),
        ] {
            assert_eq!(correction(&plans, &Action::call(tool, arguments)), None, "{tool}");
        }
    }

    #[test]
    fn a_corrected_call_is_not_corrected_to_itself() {
        let calls = [
            ("plan_show", json!({"plan": "p", "status": ["todo"], "limit": 2})),
            ("plan_write", json!({"plan": {"tasks": [{"id": "x y"}]}, "name": "q", "dry_run": true})),
            ("task_add", json!({"name": "n", "needs": ["alpha"], "run": "true"})),
            ("task_get", json!({"id": "alpha", "part": "description"})),
            ("task_update", json!({"id": "alpha", "fields": {"name": "x"}})),
            ("task_update", json!({"id": "alpha", "action": "claim", "ttl": "2h"})),
            ("task_update", json!({"id": "alpha", "if_version": 99, "fields": {"priority": "low"}})),
            ("task_update", json!({"id": "alpha", "action": "done", "result": 1, "note": "n"})),
            ("task_delete", json!({"ids": ["alpha"]})),
            ("ready_list", json!({"claim": true, "only": ["plan:p"]})),
            ("run_ready", json!({"only": ["alpha"], "jobs": 2})),
        ];
        let mut corrected = 0;
        for (tool, arguments) in calls {
            let arguments = arguments.as_object().unwrap();
            for faulty in faulty(arguments) {
                let plans = plans();
                let mut call = Action::call(tool, Value::Object(faulty));
                let mut seen = vec![call.clone()];
                while let Some(next) = correction(&plans, &call) {
                    corrected += 1;
                    assert!(!seen.contains(&next), "{next:?} is suggested again, after {seen:?}");
                    assert!(check(&next, &plans).is_ok(), "{next:?}");
                    seen.push(next.clone());
                    call = next;
                }
            }
        }
        assert!(corrected > 20, "{corrected}");
    }
}
