use std::fmt::Display;
use std::io::Write as _;

/// Reports that `check` cannot run on this machine, because `needs` is missing: `strace`, `tmux`, `bwrap`, `loop`, ….
///
/// Prints to the real standard error, so that a green run shows it too.
///
/// # Panics
/// `TASKPAWL_REQUIRE`, a list of such names with commas, has `needs`: where a harness is expected to run, a skipped one is a failure.
#[expect(clippy::disallowed_methods, reason = "the caller of the tests says what has to run")]
pub fn skip(needs: &str, check: impl Display, why: impl Display) {
    let required = std::env::var("TASKPAWL_REQUIRE").unwrap_or_default();
    assert!(!names(&required, needs), "{check} is skipped, and TASKPAWL_REQUIRE names `{needs}`: {why}");
    // Not `eprintln!`, which the test harness captures. A line that cannot be printed is no failure of the test.
    let _ = writeln!(std::io::stderr(), "SKIPPED {check} ({needs}): {why}");
}

fn names(list: &str, needs: &str) -> bool {
    list.split(',').any(|name| name.trim() == needs)
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn a_name_of_the_list_is_required() {
        assert!(names("strace, loop", "loop"));
        assert!(!names("strace,loops", "loop"));
        assert!(!names("", "loop"));
    }
}
