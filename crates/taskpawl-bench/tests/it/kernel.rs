//! What a task costs the kernel when it is kept: syncs, system calls, bytes.

use crate::counters::{Scratch, bytes_written, is_there, say, system_calls};

/// Everything that makes something durable.
const SYNCS: &str = "fsync,fdatasync,sync_file_range,msync,syncfs,sync";
const TASKS: u32 = 2_000;

/// Returns what each of 2,000 tasks adds to each of 1,000, so that opening the store does not count.
fn of_a_task(jobs: &str, count: impl Fn(&Scratch, &[&str]) -> f64) -> f64 {
    let scratch = Scratch::new();
    let of = |tasks| count(&scratch, &["run", &scratch.store("wide", tasks), jobs]);
    (of(TASKS) - of(TASKS / 2)) / f64::from(TASKS / 2)
}

/// Returns the least of some tries, or the first that keeps to a limit: how many calls meet in a commit depends on what else the machine does.
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

/// Holds a limit against 64 calls in flight; the control is that one call at a time does not keep to it.
fn guard(what: &str, limit: f64, count: impl Fn(&Scratch, &[&str]) -> f64) {
    if !is_there("strace", &["-o", "/dev/null", "true"], what) {
        return;
    }
    let together = least(limit, || of_a_task("64", &count));
    assert!(together <= limit, "{together:.3} {what} a task, at most {limit} are allowed");
    let alone = of_a_task("1", &count);
    say(&format!("{together:.3} {what} a task, {alone:.3} alone"));
    assert!(alone > limit, "the control: {alone:.3} {what} a task when only one is in flight");
}

#[test]
fn syncs_of_a_task() {
    guard("syncs", 0.2, |scratch, words| system_calls(scratch, SYNCS, words));
}

#[test]
fn system_calls_of_a_task() {
    guard("system calls", 4.0, |scratch, words| system_calls(scratch, "all", words));
}

#[test]
fn bytes_of_a_task() {
    guard("bytes", 12_000.0, bytes_written);
}
