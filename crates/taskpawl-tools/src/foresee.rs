//! Problems that a call would meet, found from its arguments before it is stored.

/// A problem that a call would meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreseen {
    /// Short name of the kind: the error class of the call, or `missing_program`.
    pub code: &'static str,
    /// Argument with the problem, such as `argv[0]`.
    pub field: String,
    /// Description of the problem.
    pub message: String,
    /// True if the call cannot succeed as it stands; otherwise another machine may have what is missing.
    pub is_certain: bool,
}

/// Returns the problem of a program that is not on the search path of this process.
pub(crate) fn missing_program(name: &str, field: &str) -> Option<Foreseen> {
    if name.is_empty() || name.contains('/') || name.contains("${{") || name.contains("${secret:") {
        return None;
    }
    let path = std::env::var_os("PATH")?;
    let is_there = std::env::split_paths(&path).any(|directory| directory.join(name).is_file());
    let message = format!("no program `{name}` is on the search path (PATH)");
    (!is_there).then_some(Foreseen {
        code: "missing_program",
        field: field.to_owned(),
        message,
        is_certain: false,
    })
}
