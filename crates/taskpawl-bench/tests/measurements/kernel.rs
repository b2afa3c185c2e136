//! Kernel cost of a persisted task: syncs, system calls and bytes.

use crate::counters::{Scratch, bytes_written, is_there, say, system_calls};

/// System calls that make data durable.
const SYNCS: &str = "fsync,fdatasync,sync_file_range,msync,syncfs,sync";
const TASKS: u32 = 2_000;

/// Returns the cost per task as the difference between 2,000 and 1,000 tasks, so that opening the store does not count.
fn of_a_task(jobs: &str, count: impl Fn(&Scratch, &[&str]) -> f64) -> f64 {
    let scratch = Scratch::new();
    let of = |tasks| count(&scratch, &["run", &scratch.store("wide", tasks), jobs]);
    (of(TASKS) - of(TASKS / 2)) / f64::from(TASKS / 2)
}

/// Returns the smallest of several counts, or the first within the limit. The number of calls that share a commit
/// depends on other load of the machine.
fn least(limit: f64, count: impl Fn() -> f64) -> f64 {
    const TRIES: usize = 5;
    let mut least = f64::INFINITY;
    for _ in 0..TRIES {
        least = least.min(count());
        if least <= limit {
            break;
        }
    }
    least
}

/// Checks a limit with 64 calls in flight. Positive control: one call at a time exceeds the limit.
fn guard(what: &str, limit: f64, count: impl Fn(&Scratch, &[&str]) -> f64) {
    if !is_there("strace", &["-o", "/dev/null", "true"], what) {
        return;
    }
    let together = least(limit, || of_a_task("64", &count));
    assert!(together <= limit, "{together:.3} {what} a task, at most {limit} are allowed");
    let alone = of_a_task("1", &count);
    say(&format!("{together:.3} {what} a task, {alone:.3} alone"));
    assert!(
        alone > limit,
        "positive control: {alone:.3} {what} a task with one in flight should exceed the limit"
    );
}

#[test]
fn syncs_per_task_are_bounded() {
    guard("syncs", 0.2, |scratch, words| system_calls(scratch, SYNCS, words));
}

#[test]
fn system_calls_per_task_are_bounded() {
    guard("system calls", 4.0, |scratch, words| system_calls(scratch, "all", words));
}

#[test]
fn bytes_per_task_are_bounded() {
    guard("bytes", 12_000.0, bytes_written);
}
