//! Complete tables of the status transitions and of the gate.

use std::fmt::Write as _;

use taskpawl_model::task::{
    BlockedReason, Cause, DependencyCounts, Entry, Gate, GateState, Status, SubtaskCounts, Trigger,
    check_transition,
};
use taskpawl_model::value::CallId;

fn reasons() -> Vec<BlockedReason> {
    let call = CallId::from("c1");
    vec![
        BlockedReason::Dependency { ids: Vec::new() },
        BlockedReason::Waiting { ids: Vec::new() },
        BlockedReason::MissingTool { name: "t".to_owned() },
        BlockedReason::Approval {
            call: Some(call.clone()),
            hash: String::new(),
            ask: None,
            options: Vec::new(),
            expires_at: None,
            why: None,
            policy: None,
            after: false,
        },
        BlockedReason::Approval {
            call: None,
            hash: String::new(),
            ask: None,
            options: Vec::new(),
            expires_at: None,
            why: None,
            policy: None,
            after: true,
        },
        BlockedReason::Interrupted { call },
        BlockedReason::Manual { text: "why".to_owned() },
    ]
}

/// Returns every status, with each reason for blocked tasks that the transition table distinguishes.
fn statuses() -> Vec<(Status, Option<BlockedReason>)> {
    let mut statuses = Vec::new();
    for status in Status::ALL.iter().copied() {
        if status == Status::Blocked {
            statuses.extend(reasons().into_iter().map(|reason| (status, Some(reason))));
        } else {
            statuses.push((status, None));
        }
    }
    statuses
}

#[test]
fn transition_table() {
    let mut table = String::new();
    for (from, reason) in statuses() {
        let kind = reason.as_ref().map_or_else(String::new, |reason| format!(" {{{}}}", reason.kind()));
        let after = matches!(reason, Some(BlockedReason::Approval { after: true, .. }));
        writeln!(table, "{from}{kind}{}", if after { " of the result" } else { "" }).unwrap();
        for to in Status::ALL.iter().copied() {
            let causes: Vec<&str> = (Cause::ALL.iter().copied())
                .filter(|cause| check_transition(from, reason.as_ref(), to, *cause).is_ok())
                .map(Cause::as_str)
                .collect();
            if !causes.is_empty() {
                writeln!(table, "  → {to:<11} {}", causes.join(" ")).unwrap();
            }
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn transition_error_names_both_statuses_and_the_cause() {
    let error = check_transition(Status::Done, None, Status::InProgress, Cause::Claim).unwrap_err();
    insta::assert_snapshot!(error, @"a task that is `done` cannot become `in_progress` by `claim`");
}

fn letter(state: GateState) -> char {
    match state {
        GateState::Wait => '·',
        GateState::Ready => 'R',
        GateState::Block => 'B',
        GateState::Skip => 'S',
    }
}

fn subtasks(open: u32, finished: u32, failed: u32) -> SubtaskCounts {
    SubtaskCounts { open, finished, failed }
}

/// Returns one letter per case: no subtasks, finished ones, an open one, a failed one, an open and a failed one.
fn cell(gate: Gate) -> String {
    let cases = [(0, 0, 0), (0, 2, 0), (1, 1, 0), (0, 1, 1), (1, 0, 1)];
    cases
        .iter()
        .map(|(open, finished, failed)| {
            letter(Gate { subtasks: subtasks(*open, *finished, *failed), ..gate }.state())
        })
        .collect()
}

/// One row for each set of dependency outcomes; the columns are the entry, and whether the gate is undecided.
#[test]
fn gate_table() {
    let mut table = String::from(
        "R ready  B block  S skip  · wait; five letters: no subtasks, finished, one open, one failed, open and failed\n",
    );
    for trigger in Trigger::ALL.iter().copied() {
        writeln!(
            table,
            "\n{trigger}\ndependencies              open   undecided  waiting  undecided  shut   undecided"
        )
        .unwrap();
        for bits in 0..16_u32 {
            let count = |bit: u32| (bits >> bit) & 1;
            let dependencies =
                DependencyCounts { done: count(0), skipped: count(1), failed: count(2), open: count(3) };
            let gate = |entry, undecided| Gate { entry, undecided, dependencies, ..Gate::new(trigger) };
            let [open, waiting, shut] = [Entry::Open, Entry::Waiting, Entry::Shut]
                .map(|entry| (cell(gate(entry, false)), cell(gate(entry, true))));
            let names = ["done", "skipped", "failed", "open"];
            let some: Vec<&str> =
                (0..4).filter(|bit| count(*bit) == 1).map(|bit| names[bit as usize]).collect();
            let some = if some.is_empty() { "none".to_owned() } else { some.join(" ") };
            write!(table, "{some:<25} {}  {}      {}    {}", open.0, open.1, waiting.0, waiting.1).unwrap();
            writeln!(table, "      {}  {}", shut.0, shut.1).unwrap();
        }
    }
    insta::assert_snapshot!(table);
}

/// The gate only distinguishes zero from more, so the rows of the table above cover all counts.
#[test]
fn gate_depends_only_on_whether_counts_are_zero() {
    for trigger in Trigger::ALL.iter().copied() {
        for numbers in 0..81_u32 {
            let digit = |place: u32| (numbers / 3_u32.pow(place)) % 3;
            let gate = |of: &dyn Fn(u32) -> u32| Gate {
                dependencies: DependencyCounts {
                    done: of(digit(0)),
                    skipped: of(digit(1)),
                    failed: of(digit(2)),
                    open: of(digit(3)),
                },
                ..Gate::new(trigger)
            };
            assert_eq!(gate(&|n| n).state(), gate(&|n| n.min(1)).state(), "{:?}", gate(&|n| n));
        }
    }
}
