//! Why a sandbox cannot be set up.

#[cfg(feature = "programs")]
use std::fmt::Display;
use std::path::PathBuf;

/// The reason why a profile cannot be enforced, with advice for the user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) missing: String,
    pub(crate) advice: String,
    /// The cgroup that was entered before the failure. The engine removes it after the end of this process.
    pub(crate) cgroup: Option<PathBuf>,
}

#[cfg(feature = "programs")]
impl Refusal {
    pub(crate) fn new(missing: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { missing: missing.into(), advice: advice.into(), cgroup: None }
    }

    /// The failure of a step that works on every system that meets the earlier checks.
    pub(super) fn step(step: &str, error: impl Display) -> Self {
        Self::new(
            format!("{step} failed ({error})"),
            "check whether a container or a security module forbids it",
        )
    }
}
