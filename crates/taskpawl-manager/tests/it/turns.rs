//! In which turn a run is given what it asks for and what becomes ready by what it reports.

use std::sync::Arc;

use serde_json::Value;
use taskpawl_model::{Answer, CallEnd, Grant, Needs, Report, Round};

use crate::support::Desk;

/// Ends `first`, behind which `behind` waits, and asks for `beside` in the same round, with one place.
fn end_first(ranks: [(&str, u64); 2], is_granted: bool) -> (Desk, Answer) {
    let desk = Desk::with(&["first calls=1", "behind calls=1 needs=first", "beside calls=1"]);
    let started = desk.start(&["first"]).started.remove(0);
    let report = Report {
        task: started.key,
        attempt: started.attempt,
        call: started.call.id,
        end: CallEnd::Succeeded(Value::Null),
        cut: Vec::new(),
        usage: None,
        changed_beyond: Vec::new(),
        changes_unknown: None,
        inputs_changed: false,
        go_on: true,
    };
    let beside = desk.key("beside");
    let grants = is_granted.then(|| (beside, Grant::default())).into_iter().collect();
    let ranks = ranks.into_iter().map(|(id, rank)| (desk.key(id), rank)).collect();
    let round = Round {
        reports: vec![report],
        claims: vec![beside],
        grants,
        places: 1,
        takes_new: true,
        tools: Arc::new(["t".to_owned()].into()),
        ranks: Arc::new(ranks),
        ..Round::default()
    };
    let answer = desk.round(round);
    (desk, answer)
}

fn started(answer: &Answer) -> Vec<&str> {
    answer.started.iter().map(|call| call.task.as_str()).collect()
}

#[test]
fn what_becomes_ready_with_a_longer_way_goes_before_what_was_asked_for() {
    let (desk, answer) = end_first([("behind", 9), ("beside", 2)], false);
    assert_eq!(started(&answer), ["behind"]);
    assert_eq!(
        answer.needs,
        [(desk.key("beside"), Needs::default())],
        "it comes back, to be asked for again"
    );
    let (desk, answer) = end_first([("behind", 2), ("beside", 9)], false);
    assert_eq!(started(&answer), ["beside"]);
    assert_eq!(answer.needs, []);
    assert_eq!(answer.ready.iter().map(|node| node.key).collect::<Vec<_>>(), [desk.key("behind")]);
}

#[test]
fn what_holds_what_it_needs_goes_before_what_becomes_ready() {
    let (_, answer) = end_first([("behind", 9), ("beside", 2)], true);
    assert_eq!(started(&answer), ["beside"]);
}
