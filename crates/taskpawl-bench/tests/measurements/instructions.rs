//! Instruction counts by callgrind. They are compared with those of the bare loop in the same build, and with those of
//! a smaller graph. So neither another compiler nor another profile affects the result.

use crate::counters::{Scratch, instructions, is_there, say};

/// Largest ratio of the instructions per task to those of the bare loop: 25 % above the current value.
const BESIDE_THE_LOOP: f64 = 40.0;

/// Largest growth of the cost of a change if the graph is sixteen times as large.
const GROWTH: f64 = 1.15;

/// Returns the cost of each additional task between `few` and `many`.
fn of_a_task(of: impl Fn(u32) -> f64, few: u32, many: u32) -> f64 {
    (of(many) - of(few)) / f64::from(many - few)
}

/// Returns the instructions of a run. On a slow machine timers fire that a fast one does not reach, so the smallest of
/// three counts is used.
fn run(tasks: u32) -> f64 {
    let once = || instructions(&["run", ":memory:", "64", "wide", &tasks.to_string()]);
    (0..3).map(|_| once()).fold(f64::INFINITY, f64::min)
}

fn bare(order: &str) -> impl Fn(u32) -> f64 {
    move |tasks| instructions(&["bare-loop", "wide", &tasks.to_string(), "64", "1", order])
}

fn has_valgrind() -> bool {
    is_there("valgrind", &["--version"], "instructions of a task")
}

#[test]
fn instructions_per_task_are_bounded() {
    if !has_valgrind() {
        return;
    }
    let (mine, loops) = (of_a_task(run, 300, 1_800), of_a_task(bare("counted"), 300, 1_800));
    let ratio = mine / loops;
    say(&format!("{mine:.0} instructions a task, {ratio:.1} times those of the bare loop"));
    assert!(
        ratio <= BESIDE_THE_LOOP,
        "{mine:.0} instructions a task, {ratio:.1} times those of the bare loop"
    );
    assert!(ratio > 1.0, "positive control: taskpawl should take more than the bare loop");
}

#[test]
fn instructions_of_a_command_do_not_grow() {
    if !has_valgrind() {
        return;
    }
    let scratch = Scratch::new();
    let of = |tasks: u32| {
        let store = scratch.store("chain", tasks);
        of_a_task(|times| instructions(&["updates", &store, &times.to_string()]), 100, 200)
    };
    let growth = of(8_000) / of(500);
    assert!(growth <= GROWTH, "a change takes {growth:.2} times the instructions in a larger store");
    let searched = of_a_task(bare("searched"), 600, 1_200) / of_a_task(bare("searched"), 150, 300);
    assert!(searched > GROWTH, "positive control: searching all tasks only grows by {searched:.2}");
}
