//! The order of claims in a round: requested tasks versus tasks that the same round makes ready.

use std::sync::Arc;

use serde_json::Value;
use taskpawl_model::command::{Answer, CallEnd, Grant, Needs, Report, Round};

use crate::support::Fixture;

/// Ends `first`, which `behind` waits for, and requests `beside` in the same round, with one free slot.
fn end_first(ranks: [(&str, u64); 2], is_granted: bool) -> (Fixture, Answer) {
    let fixture = Fixture::with(&["first calls=1", "behind calls=1 needs=first", "beside calls=1"]);
    let started = fixture.start(&["first"]).started.remove(0);
    let report = Report {
        task: started.key,
        attempt: started.attempt,
        call: started.call.id,
        end: CallEnd::Succeeded(Value::Null),
        cut: Vec::new(),
        usage: None,
        artifacts: Vec::new(),
        changed_beyond: Vec::new(),
        changes_unknown: None,
        inputs_changed: false,
        worker: None,
        go_on: true,
    };
    let beside = fixture.key("beside");
    let grants = is_granted.then(|| (beside, Grant::default())).into_iter().collect();
    let ranks = ranks.into_iter().map(|(id, rank)| (fixture.key(id), rank)).collect();
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
    let answer = fixture.round(round);
    (fixture, answer)
}

fn started(answer: &Answer) -> Vec<&str> {
    answer.started.iter().map(|call| call.task.as_str()).collect()
}

#[test]
fn newly_ready_tasks_on_a_longer_path_precede_requested_ones() {
    let (fixture, answer) = end_first([("behind", 9), ("beside", 2)], false);
    assert_eq!(started(&answer), ["behind"]);
    assert_eq!(
        answer.needs,
        [(fixture.key("beside"), Needs::default())],
        "the claim is returned, to be requested again"
    );
    let (fixture, answer) = end_first([("behind", 2), ("beside", 9)], false);
    assert_eq!(started(&answer), ["beside"]);
    assert_eq!(answer.needs, []);
    assert_eq!(answer.ready.iter().map(|node| node.key).collect::<Vec<_>>(), [fixture.key("behind")]);
}

#[test]
fn tasks_that_hold_their_resources_precede_newly_ready_ones() {
    let (_, answer) = end_first([("behind", 9), ("beside", 2)], true);
    assert_eq!(started(&answer), ["beside"]);
}
