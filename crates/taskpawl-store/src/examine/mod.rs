//! Finds faults in a store, and repairs those that can be repaired without loss.

mod nodes;
mod rows;
mod siblings;

use std::fmt::Display;
use std::path::Path;

use serde::Serialize;
use taskpawl_model::command::{Command, Context, Request};

use crate::committer::Committer;
use crate::file_system::FileSystemKind;
use crate::{Location, StoreError, files, json, sqlite};

pub(crate) use nodes::{Derived, check_nodes};
pub(crate) use rows::check_rows;
pub use siblings::{narrow_mode, wide_mode};

/// Diagnostics of one kind beyond this number are only counted.
const MAX: usize = 20;

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
    /// True if this call of [`examine`] has repaired it.
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
    check: &'static str,
    severity: Severity,
    remedy: &'static str,
    found: Vec<Diagnostic>,
    more: usize,
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

/// Checks the store at `location` and the files beside it. With a `repair` context, repairs the faults that can
/// be repaired without loss, as the actor of that context. If a repair changes or removes rows, a full copy
/// of the store is kept beside it.
///
/// # Errors
/// The store cannot be opened for a reason other than damage, or the repair failed.
pub fn examine(location: &Location, repair: Option<&Context>) -> Result<Vec<Diagnostic>, StoreError> {
    let Some(path) = location.path() else { return Ok(Vec::new()) };
    if files::identity(path)?.is_none() {
        return Ok(Vec::new());
    }
    let mut found = look(location, path)?;
    let Some(context) =
        repair.filter(|_| found.iter().any(|diagnostic| diagnostic.severity == Severity::Repairable))
    else {
        return Ok(found);
    };
    repair_all(location, path, context, &found)?;
    // Repairs are verified by a second examination, not assumed from the absence of an error.
    let left = look(location, path)?;
    for diagnostic in &mut found {
        diagnostic.is_repaired = diagnostic.severity == Severity::Repairable && !left.contains(diagnostic);
    }
    // A repair can reveal faults that the first examination could not see.
    let new = left.into_iter().filter(|diagnostic| !found.contains(diagnostic)).collect::<Vec<_>>();
    found.extend(new);
    Ok(found)
}

fn look(location: &Location, path: &Path) -> Result<Vec<Diagnostic>, StoreError> {
    let mut found = siblings::look(path)?;
    found.extend(file_system_kind(path));
    let content = match location {
        Location::Memory | Location::Call(_) => Ok(Vec::new()),
        Location::Sqlite(path) => sqlite::examine(path),
        Location::Json(path) => json::examine(path),
    };
    match content {
        Ok(content) => found.extend(content),
        Err(
            error @ (StoreError::Corrupt { .. } | StoreError::NotAStore { .. } | StoreError::Printed { .. }),
        ) => {
            let diagnostic = Diagnostic::new(
                "integrity",
                Severity::Damage,
                path.display(),
                error.to_string(),
                error.hint().to_string(),
            );
            found.push(diagnostic);
        }
        Err(error) => return Err(error),
    }
    Ok(found)
}

fn file_system_kind(path: &Path) -> Option<Diagnostic> {
    let warning = FileSystemKind::of(path).warning(path)?;
    let remedy = "use it from one machine at a time, or name another place with `--store`";
    Some(Diagnostic::new("file_system", Severity::Note, path.display(), warning, remedy))
}

/// Repairs in the order of dependency: files, then rows, then gates, which can only be settled on correct
/// nodes.
fn repair_all(
    location: &Location,
    path: &Path,
    context: &Context,
    found: &[Diagnostic],
) -> Result<(), StoreError> {
    siblings::repair(path)?;
    let is_found = |checks: &[&str]| {
        found.iter().any(|diagnostic| checks.contains(&diagnostic.check) && diagnostic.is_open())
    };
    if let Location::Sqlite(path) = location
        && is_found(&["index", "stray_row", "excerpt", "node", "counters"])
    {
        sqlite::repair(path)?;
    }
    if is_found(&["node", "gate"]) {
        let request = Request { command: Command::Settle, context: context.clone() };
        Committer::open(location).commit(&[request])?;
    }
    Ok(())
}
