//! Retry policy: when a failed call starts again.

use std::time::Duration;

use serde_json::Value;

use crate::rules::draft::Draft;
use crate::task::record::{CallRecord, TaskRecord};
use crate::task::spec::Retry;
use crate::value::Timestamp;

/// First pause, if the policy has none.
const DELAY: Duration = Duration::from_millis(500);

/// Factor by which each pause grows.
const FACTOR: f64 = 2.0;

/// Longest pause.
const MAX_DELAY: Duration = Duration::from_secs(128);

/// Failure classes that repeat deterministically. They are retried only if `retryOn` names them.
pub(super) const FINAL: &[&str] = &[
    "expression",
    "truncated",
    "emit",
    "invalid_args",
    "missing_tool",
    "outside_root",
    "protected",
    "blocked_address",
    "secret",
    "denied",
    "conflict",
    "cancelled",
];

impl Draft<'_> {
    /// Returns the time at which a failed call is retried; `None` if it is not.
    pub(super) fn retry_at(&self, record: &TaskRecord, call: &CallRecord) -> Option<Timestamp> {
        let policy =
            call.spec.retry.as_ref().or(record.spec.retry.as_ref()).or(self.room.rules.retry.as_ref())?;
        if call.body.failures >= policy.attempts || !is_retried(policy, call) {
            return None;
        }
        let asked = call.body.error.as_ref().and_then(|error| error.retry_after);
        let pause = pause(policy, call.body.failures, seed(record, call))
            .max(asked.map_or(Duration::ZERO, |pause| pause.0));
        let due = self.now().checked_add_signed(chrono::TimeDelta::from_std(pause).ok()?)?;
        let deadline = record.body.progress.deadline;
        // A retry after the deadline of the task could only fail with a timeout.
        deadline.is_none_or(|deadline| due < deadline).then_some(due)
    }
}

fn is_retried(policy: &Retry, call: &CallRecord) -> bool {
    let Some(error) = &call.body.error else { return false };
    // The tool knows more than the classes that the plan lists.
    if let Some(is_retried) = error.is_retried {
        return is_retried;
    }
    let code = call.body.result.as_ref().and_then(|result| result.get("exitCode")).and_then(Value::as_i64);
    let is_meant = |wanted: &Value| match wanted {
        Value::Number(wanted) => error.class == "exit_code" && code.is_some() && wanted.as_i64() == code,
        Value::String(class) => *class == error.class,
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
    };
    if policy.retry_on.is_empty() {
        !FINAL.contains(&error.class.as_str())
    } else {
        policy.retry_on.iter().any(is_meant)
    }
}

/// Returns the pause after this number of failures: exponential up to the longest pause.
///
/// With jitter it is reduced by up to half, so that calls which failed together are not retried together.
fn pause(policy: &Retry, failures: u32, seed: u64) -> Duration {
    let first = policy.delay.map_or(DELAY, |delay| delay.0).as_secs_f64();
    let longest =
        // An author's own first delay above the default maximum raises that maximum.
        policy.max_delay.map_or(MAX_DELAY.max(policy.delay.map_or(DELAY, |delay| delay.0)), |most| most.0);
    let exponent = i32::try_from(failures.saturating_sub(1)).unwrap_or(i32::MAX);
    let grown = first * policy.factor.unwrap_or(FACTOR).powi(exponent);
    // The power may overflow to infinity or NaN. Both fail this comparison and give the longest pause.
    let pause = if grown < longest.as_secs_f64() { Duration::from_secs_f64(grown.max(0.0)) } else { longest };
    if policy.jitter.unwrap_or(true) { pause.mul_f64(share(seed)) } else { pause }
}

/// Returns a pseudo-random number from 0.5 to 1.
fn share(seed: u64) -> f64 {
    // Mixing step of SplitMix64. The upper 32 bits are represented exactly as a float.
    let mut mixed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    let upper = u32::try_from((mixed ^ (mixed >> 31)) >> 32).unwrap_or(0);
    0.5 + f64::from(upper) / f64::from(u32::MAX) / 2.0
}

/// Returns a seed that is equal for the same failure, so that a decision can be repeated: FNV-1a over task, call and
/// failures.
fn seed(record: &TaskRecord, call: &CallRecord) -> u64 {
    let failures = call.body.failures.to_le_bytes();
    let parts = [record.id.as_str().as_bytes(), &[0], call.id.as_str().as_bytes(), &[0], &failures];
    parts.into_iter().flatten().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Period;

    fn policy(jitter: bool) -> Retry {
        let (delay, factor, max_delay) = (None, None, None);
        Retry { attempts: 20, delay, factor, max_delay, jitter: Some(jitter), retry_on: Vec::new() }
    }

    #[test]
    fn pauses_grow_exponentially_up_to_the_maximum() {
        let pauses: Vec<f64> = (1..12).map(|n| pause(&policy(false), n, 0).as_secs_f64()).collect();
        assert_eq!(pauses, [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 128.0, 128.0]);
        assert_eq!(pause(&policy(false), u32::MAX, 0), MAX_DELAY);
    }

    #[test]
    fn a_delay_above_the_default_maximum_raises_it() {
        let hour = Period(Duration::from_secs(3600));
        let policy = Retry { delay: Some(hour), ..policy(false) };
        assert_eq!(pause(&policy, 3, 0), hour.0);
    }

    #[test]
    fn jitter_reduces_pauses_by_up_to_half_evenly() {
        let shares: Vec<f64> = (0..1000).map(share).collect();
        assert!(shares.iter().all(|share| (0.5..=1.0).contains(share)));
        for tenth in 0..10 {
            let (low, high) = (0.5 + f64::from(tenth) * 0.05, 0.55 + f64::from(tenth) * 0.05);
            let count = shares.iter().filter(|share| (low..high).contains(*share)).count();
            assert!((50..=150).contains(&count), "{count} of 1000 between {low} and {high}");
        }
    }
}
