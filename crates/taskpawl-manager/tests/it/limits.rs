//! Refusals of single values, so that other data is not lost.

use serde_json::Value;
use taskpawl_manager::{Ending, Error};
use taskpawl_model::command::{CallEnd, Command, Refusal, Report, Round};
use taskpawl_model::task::Status;
use taskpawl_model::value::Map;
use taskpawl_model::value::RunId;
use taskpawl_model::value::Selector;

use crate::support::Fixture;

#[test]
fn a_selector_without_matches_is_refused() {
    let fixture = Fixture::with(&["a"]);
    let labels = Map::from_iter([("labels".to_owned(), serde_json::json!(["x"]))]);
    fixture.manager.update("a", labels, None).unwrap();
    let select = |text: &str| fixture.manager.select(&[text.parse::<Selector>().unwrap()], &[]);
    assert_eq!(select("label:x").unwrap(), ["a"]);
    for text in ["label:y", "plan:nope"] {
        let error = select(text).unwrap_err();
        assert!(matches!(&error, Error::Refused(refusal) if refusal.is_about_ids()), "{error}");
    }
}

#[test]
fn a_too_deeply_nested_value_is_refused() {
    let fixture = Fixture::with(&["a"]);
    let nested = |depth: usize| (0..depth).fold(Value::Null, |value, _| Value::Array(vec![value]));
    let done = |depth| {
        let ending = Ending { result: Some(nested(depth)), ..Ending::default() };
        fixture.manager.done(&["a".to_owned()], ending)
    };
    let error = done(100).unwrap_err();
    assert!(matches!(&error, Error::Refused(refusal) if matches!(**refusal, Refusal::InvalidField { .. })));
    done(60).unwrap();
    assert_eq!(fixture.manager.get("a").unwrap().status, Status::Done);
}

#[test]
fn a_report_on_a_deleted_task_does_not_affect_others() {
    let fixture = Fixture::with(&["a calls=1", "b calls=1"]);
    let manager = fixture.manager.clone().with_run(RunId::from("r"));
    let tools = std::sync::Arc::new(["t".to_owned()].into());
    let ready = manager.read(|view| Ok(vec![view.key("a")?.unwrap(), view.key("b")?.unwrap()])).unwrap();
    let claim = Round { claims: ready, tools, ..Round::default() };
    let started = manager.command(Command::Round(Box::new(claim))).unwrap().started;
    fixture.manager.cancel(&["a".to_owned()], None).unwrap();
    fixture.manager.delete(&["a".to_owned()]).unwrap();
    let reports = started.iter().map(|started| Report {
        task: started.key,
        attempt: started.attempt,
        call: started.call.id.clone(),
        end: CallEnd::Succeeded(Value::Null),
        cut: Vec::new(),
        usage: None,
        artifacts: Vec::new(),
        changed_beyond: Vec::new(),
        changes_unknown: None,
        inputs_changed: false,
        worker: None,
        go_on: true,
    });
    let round = Round { reports: reports.collect(), ..Round::default() };
    manager.command(Command::Round(Box::new(round))).unwrap();
    assert_eq!(fixture.manager.get("b").unwrap().status, Status::Done);
}
