//! Durations for people.

use std::time::Duration;

/// Returns a duration in a short form, such as `1m01s`.
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{} ms", time.as_millis()),
        1..10 => format!("{:.1} s", time.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        let texts =
            [90, 2_345, 59_999, 61_000, 3_720_000].map(|millis| duration(Duration::from_millis(millis)));
        assert_eq!(texts, ["90 ms", "2.3 s", "59 s", "1m01s", "1h02m"]);
    }
}
