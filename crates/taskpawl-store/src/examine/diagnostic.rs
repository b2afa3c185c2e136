//! What an examination found.

use std::fmt::Display;

use serde::Serialize;

/// Severity of a diagnostic, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Severity {
    /// Nothing is wrong, but the user should know about it.
    Note,
    /// `doctor --fix` can repair it without loss.
    #[serde(rename = "mendable")]
    Repairable,
    /// Data is lost, or only the owner can decide which data is right.
    Damage,
}

/// A diagnostic: a fault or a notable property of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Diagnostic {
    /// The name of the check, such as `stray_row`.
    pub check: &'static str,
    /// The severity, which decides whether a repair is attempted.
    pub severity: Severity,
    /// The affected file or task.
    pub place: String,
    /// Describes the fault.
    pub message: String,
    /// Describes the repair, or the action that the owner can take.
    pub remedy: String,
    /// True if this call of [`examine`](crate::examine) has repaired it.
    #[serde(rename = "isMended")]
    pub is_repaired: bool,
}

impl Diagnostic {
    /// Creates a diagnostic that is not repaired yet.
    pub fn new(
        check: &'static str,
        severity: Severity,
        place: impl Display,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let place = place.to_string();
        Self { check, severity, place, message: message.into(), remedy: remedy.into(), is_repaired: false }
    }

    /// Returns whether the fault still needs a repair or an action of the owner.
    pub fn is_open(&self) -> bool {
        self.severity > Severity::Note && !self.is_repaired
    }
}

/// Collects diagnostics of one kind, and counts those beyond the limit.
#[derive(Debug)]
pub(crate) struct Diagnostics {
    pub(crate) check: &'static str,
    pub(crate) severity: Severity,
    pub(crate) remedy: &'static str,
    pub(crate) found: Vec<Diagnostic>,
    pub(crate) more: usize,
}

impl Diagnostics {
    pub(crate) fn new(check: &'static str, severity: Severity, remedy: &'static str) -> Self {
        Self { check, severity, remedy, found: Vec::new(), more: 0 }
    }

    pub(crate) fn add(&mut self, place: impl Display, message: impl Into<String>) {
        if self.found.len() < MAX {
            self.found.push(Diagnostic::new(self.check, self.severity, place, message, self.remedy));
        } else {
            self.more += 1;
        }
    }

    pub(crate) fn finish(mut self) -> Vec<Diagnostic> {
        if self.more > 0 {
            let message = format!("{} more of this kind", self.more);
            self.found.push(Diagnostic::new(self.check, self.severity, "the store", message, self.remedy));
        }
        self.found
    }
}

/// Diagnostics of one kind beyond this number are only counted.
pub(crate) const MAX: usize = 20;
