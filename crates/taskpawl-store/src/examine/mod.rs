//! Finds faults in a store, and repairs those that can be repaired without loss.

pub(crate) mod diagnostic;
mod nodes;
mod rows;
mod siblings;

use std::path::Path;

use taskpawl_model::command::{Command, Context, Request};

use crate::committer::Committer;
use crate::examine::diagnostic::{Diagnostic, Severity};
use crate::file_system::FileSystemKind;
use crate::{Location, StoreError, files, json, sqlite};

pub(crate) use nodes::{Derived, check_nodes};
pub(crate) use rows::check_rows;
pub use siblings::{narrow_mode, wide_mode};

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
            if matches!(error, StoreError::NotAStore { .. } | StoreError::Printed { .. }) {
                // The modes of other files are not ours to change.
                return Ok(vec![diagnostic]);
            }
            found.push(diagnostic);
        }
        Err(error) => return Err(error),
    }
    Ok(found)
}

fn file_system_kind(path: &Path) -> Option<Diagnostic> {
    let warning = FileSystemKind::of(path).warning(path)?;
    let remedy = "use it from one machine at a time, or use another path with `--store`";
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
