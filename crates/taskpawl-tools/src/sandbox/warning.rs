//! The warning of new files that other programs obey.

/// Largest number of new files that a result or a report lists.
pub(super) const MAX_LISTED: usize = 100;

/// Largest number of files that the warning names.
const MAX_NAMED: usize = 5;

/// Warns of files that other programs obey. `more` is the number of files besides the named ones.
pub(super) fn warning(names: &[String], more: usize, found: &str) -> String {
    let first: Vec<_> = names.iter().take(MAX_NAMED).map(|name| format!("`{name}`")).collect();
    let more = match names.len() + more - first.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "{}{more}: {found}, and other programs run or load such files without asking; check before you continue",
        first.join(", ")
    )
}
