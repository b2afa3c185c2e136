//! Switches faults on by their names.

use taskpawl_engine::faults as engine;

/// The variable that lists faults, with commas between them.
pub const VARIABLE: &str = "TASKPAWL_FAULT";

/// Switches on what the environment lists, for the rest of this process.
///
/// # Panics
/// There is no fault of that name: a control that breaks nothing would be green for the wrong reason.
pub fn enable_from_environment() {
    let names = std::env::var_os(VARIABLE).unwrap_or_default();
    for name in names.to_string_lossy().split(',').filter(|name| !name.is_empty()) {
        assert!(enable(name), "no fault `{name}`");
    }
}

fn enable(name: &str) -> bool {
    let all: &[(&str, fn())] = &[("FreshKeys", || engine::enable(engine::Fault::FreshKeys))];
    let found = all.iter().find(|(known, _)| *known == name);
    if let Some((_, switch_on)) = found {
        switch_on();
    }
    found.is_some()
}
