//! All advice of the library can be followed by a client of this server: it is an existing call, or a command marked
//! as being for people.

use serde_json::{Value, json};
use taskpawl::model::advice::{Advice, CommandLine, Hint};
use taskpawl::model::command::{Conflict, Refusal, Remedy};
use taskpawl::model::task::{BlockedReason, Status, allowed_by_hand};
use taskpawl::model::value::Selector;
use taskpawl::model::value::TaskId;

use super::actions::{Action, CallWords};
use super::core::{Core, TASK_ACTIONS};
use super::options::ServerOptions;
use super::refusal::Refused;

/// The mark of a command for people.
const FOR_PEOPLE: &str = " (a person, at a terminal)";

/// Checks that the tool of a call exists and accepts its arguments.
fn check_call(call: &Value) {
    let options = ServerOptions::default();
    let tool = Core::named(call["tool"].as_str().unwrap(), &options).unwrap_or_else(|| panic!("{call}"));
    let schema = Value::Object((*tool.definition(&options).input_schema).clone());
    let arguments = call["arguments"].as_object().unwrap();
    for (name, value) in arguments {
        let property = schema["properties"].get(name).unwrap_or_else(|| panic!("no `{name}`: {call}"));
        if let Some(words) = property["enum"].as_array() {
            assert!(words.contains(value), "{call}");
        }
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        assert!(arguments.contains_key(name.as_str().unwrap()), "{call}");
    }
}

fn check_action(action: &Value) {
    if action.get("askPersonToRun").is_none() {
        check_call(action);
    }
}

/// Checks the parts of a text between backticks: calls, known words, or commands marked as being for people.
fn check_text(text: &str) {
    let parts: Vec<&str> = text.split('`').collect();
    for (index, part) in parts.iter().enumerate().filter(|(index, _)| index % 2 == 1) {
        let is_for_people = parts.get(index + 1).is_some_and(|rest| rest.starts_with(FOR_PEOPLE));
        if let Some((tool, arguments)) = part.split_once(" {") {
            check_call(
                &json!({"tool": tool, "arguments": serde_json::from_str::<Value>(&format!("{{{arguments}")).unwrap()}),
            );
        } else if !is_for_people {
            assert!(!part.starts_with("taskpawl ") && !part.starts_with('-'), "{text}");
            let known = ["unblock", "block", "approve", "reject", "undo", "apply"];
            assert!(!known.contains(part), "{text}");
        }
    }
}

fn check(refusal: Refusal) -> Value {
    let refused = Refused::from(refusal);
    let advice = refused.advice();
    let answer = refused.into_answer(None, &CommandLine::default(), &advice).into_json();
    for action in answer["nextActions"].as_array().into_iter().flatten() {
        check_action(action);
    }
    for field in ["message", "hint"] {
        if let Some(text) = answer["error"][field].as_str() {
            check_text(text);
        }
    }
    answer
}

fn id() -> TaskId {
    TaskId::from("a")
}

#[test]
fn what_a_state_allows_is_said_in_actions_and_the_rest_to_be_for_people() {
    let manual = BlockedReason::Manual { text: "the key is lost".to_owned() };
    let interrupted = BlockedReason::Interrupted { call: "c1".into() };
    let asked = serde_json::from_value(json!({"type": "approval"})).unwrap();
    let lacking = BlockedReason::MissingTool { name: "x".to_owned() };
    let behind = BlockedReason::Dependency { ids: vec![id()] };
    let states = Status::ALL.iter().map(|status| (*status, None));
    let blocked = [manual, interrupted, asked, lacking, behind].map(|reason| (Status::Blocked, Some(reason)));
    for (from, reason) in states.chain(blocked) {
        let allowed = allowed_by_hand(from, reason.as_ref());
        let answer = check(Refusal::Transition {
            id: id(),
            from,
            reason,
            to: Status::Done,
            by: "done",
            allowed,
            since: taskpawl::model::command::ChangesSince::default(),
        });
        let hint = answer["error"]["hint"].as_str().unwrap_or_default();
        for verb in hint
            .split("the actions are: ")
            .skip(1)
            .flat_map(|verbs| verbs.split("; ").next().unwrap_or_default().split(", "))
        {
            assert!(TASK_ACTIONS.contains(&verb), "{hint}");
        }
    }
}

#[test]
fn options_of_the_command_line_are_named_as_arguments() {
    let names =
        || vec![Conflict { task: "x".into(), why: "would change".to_owned(), remedy: Remedy::RedoOrKeep }];
    for (refusal, said) in [
        (Refusal::DependentsRan { id: id(), by: "reopen", dependents: vec![id()] }, "`cascade: true`"),
        (Refusal::TriggerWithoutDependencies { id: id(), trigger: "any_done" }, "`needs`"),
        (Refusal::PlanConflict { plan: "p".to_owned(), conflicts: names() }, "`reopen`"),
        (Refusal::ImportConflict { source_name: "p".to_owned(), conflicts: names() }, "other ids"),
        (
            Refusal::WorkConflict {
                conflict: Conflict { task: id(), why: "ran".to_owned(), remedy: Remedy::Redo },
            },
            "\"action\":\"reopen\"",
        ),
        (Refusal::MissingParams { plan: "p".to_owned(), params: vec!["x".to_owned()] }, "`default`"),
        (Refusal::InProgress { tasks: vec![id()] }, "\"action\":\"cancel\""),
        (Refusal::StillNeeded { id: id(), by: vec![id()] }, "`cancel`"),
        (
            Refusal::WorkStarted {
                id: id(),
                status: Status::Done,
                what: "x",
                reopen: Some(Advice::reopen(&id())),
            },
            "\"action\":\"reopen\"",
        ),
        (Refusal::UnknownRun { id: "r".to_owned() }, "plan_show"),
        (Refusal::NothingSelected { selector: "label:x".to_owned() }, "plan_show"),
        (Refusal::NothingReady, "\"status\":[\"todo\",\"blocked\"]"),
        (
            Refusal::NotManual {
                id: id(),
                what: "runs",
                by: "run",
                ends: vec![Advice::done(&id()), Advice::fail(&id())],
            },
            "\"action\":\"done\"",
        ),
        (Refusal::NotAsked { id: id(), status: Status::Done, by: None }, "task_get"),
        (Refusal::WrongAnswer { id: id(), answer: None, options: vec!["red".to_owned()] }, FOR_PEOPLE),
        (Refusal::NothingToUndo { actor: "a".to_owned() }, FOR_PEOPLE),
    ] {
        let answer = check(refusal);
        assert!(answer["error"].to_string().replace("\\\"", "\"").contains(said), "{answer}");
    }
}

#[test]
fn all_advice_is_a_call_that_there_is_or_for_people() {
    let all = [
        Advice::show(&id()),
        Advice::explain(&id()),
        Advice::ExplainReady {},
        Advice::logs(&id()),
        Advice::history(&id()),
        Advice::History { id: None },
        Advice::HistoryOfRun { run: "r".into() },
        Advice::List { status: vec![Status::Todo] },
        Advice::ListSelectors {},
        Advice::Runs {},
        Advice::claim(&id()),
        Advice::ClaimNext {},
        Advice::Release { id: id(), holder: Some("ann".to_owned()) },
        Advice::ReleaseSilent { id: id() },
        Advice::done(&id()),
        Advice::fail(&id()),
        Advice::skip(&id()),
        Advice::Cancel { id: id() },
        Advice::unblock(&id()),
        Advice::Approve { id: id(), answer: None },
        Advice::Reject { id: id() },
        Advice::SendBack { id: id() },
        Advice::Diff { id: id() },
        Advice::Retry { id: id(), cascade: true },
        Advice::Reopen { id: id(), cascade: true },
        Advice::run_ready(&[Selector::Plan("p".to_owned())]),
        Advice::RunOne { id: id() },
        Advice::AddDependency { id: id(), on: id() },
        Advice::Undo { revision: Some(1) },
        Advice::DoctorFix {},
        Advice::Trust {},
        Advice::ConfigPath {},
        Advice::ListTools { connect: true },
        Advice::retry_failed_then_run(&[], Vec::new()),
    ];
    for advice in all {
        let actions = Action::of(&advice);
        assert!(!actions.is_empty(), "{advice:?}");
        for action in &actions {
            check_action(&action.to_json());
        }
        check_text(
            &Hint::from(advice).format_with(&CallWords { agent: None, line: &CommandLine::default() }),
        );
    }
}
