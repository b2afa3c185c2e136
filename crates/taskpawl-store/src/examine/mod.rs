//! Looking for what is wrong with a store, and mending what can be mended without loss.

mod nodes;
mod rows;
mod siblings;

use std::fmt::Display;
use std::path::Path;

use serde::Serialize;
use taskpawl_model::{Command, Context, Request};

use crate::committer::Committer;
use crate::medium::Medium;
use crate::{Location, StoreError, files, json, sqlite};

pub(crate) use nodes::{Derived, check_nodes};
pub(crate) use rows::check_rows;
pub use siblings::{narrow_mode, wide_mode};

/// More findings of one kind than this are only counted.
const MOST: usize = 20;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Severity {
    /// Nothing is wrong; somebody should know it.
    Note,
    /// It can be mended without loss.
    Mendable,
    /// Something is lost, or nobody but its owner can say what is right.
    Damage,
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Finding {
    /// The kind, as a word.
    pub check: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// The file or the task.
    pub place: String,
    /// What is not as it should be.
    pub message: String,
    /// What mending does about it, or what its owner can do.
    pub remedy: String,
    /// Whether it has just been mended.
    pub is_mended: bool,
}

impl Finding {
    /// Returns a finding that has not been mended.
    pub fn new(
        check: &'static str,
        severity: Severity,
        place: impl Display,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let place = place.to_string();
        Self { check, severity, place, message: message.into(), remedy: remedy.into(), is_mended: false }
    }

    /// Returns whether nothing was done about it yet, and something could or should be.
    pub fn is_open(&self) -> bool {
        self.severity > Severity::Note && !self.is_mended
    }
}

/// Collects findings of one kind; what is too much is only counted.
#[derive(Debug)]
pub(crate) struct Findings {
    check: &'static str,
    severity: Severity,
    remedy: &'static str,
    found: Vec<Finding>,
    more: usize,
}

impl Findings {
    pub(crate) fn new(check: &'static str, severity: Severity, remedy: &'static str) -> Self {
        Self { check, severity, remedy, found: Vec::new(), more: 0 }
    }

    pub(crate) fn add(&mut self, place: impl Display, message: impl Into<String>) {
        if self.found.len() < MOST {
            self.found.push(Finding::new(self.check, self.severity, place, message, self.remedy));
        } else {
            self.more += 1;
        }
    }

    pub(crate) fn finish(mut self) -> Vec<Finding> {
        if self.more > 0 {
            let message = format!("{} more of this kind", self.more);
            self.found.push(Finding::new(self.check, self.severity, "the store", message, self.remedy));
        }
        self.found
    }
}

/// Looks for what is wrong with the store at `location` and the files beside it. With `mend`, mends what can be mended without
/// loss, in the name of that context; rows that are changed or removed are kept in a copy of the whole beside the store.
///
/// # Errors
/// The store cannot be opened for another reason than damage, or mending failed.
pub fn examine(location: &Location, mend: Option<&Context>) -> Result<Vec<Finding>, StoreError> {
    let Some(path) = location.path() else { return Ok(Vec::new()) };
    if files::identity(path)?.is_none() {
        return Ok(Vec::new());
    }
    let mut found = look(location, path)?;
    let Some(context) = mend.filter(|_| found.iter().any(|finding| finding.severity == Severity::Mendable))
    else {
        return Ok(found);
    };
    mend_all(location, path, context, &found)?;
    let left = look(location, path)?;
    for finding in &mut found {
        finding.is_mended = finding.severity == Severity::Mendable && !left.contains(finding);
    }
    // Mending one thing may show another.
    let new = left.into_iter().filter(|finding| !found.contains(finding)).collect::<Vec<_>>();
    found.extend(new);
    Ok(found)
}

fn look(location: &Location, path: &Path) -> Result<Vec<Finding>, StoreError> {
    let mut found = siblings::look(path)?;
    found.extend(medium(path));
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
            let finding = Finding::new(
                "integrity",
                Severity::Damage,
                path.display(),
                error.to_string(),
                error.hint().to_string(),
            );
            found.push(finding);
        }
        Err(error) => return Err(error),
    }
    Ok(found)
}

fn medium(path: &Path) -> Option<Finding> {
    let warning = Medium::of(path).warning(path)?;
    let remedy = "use it from one machine at a time, or name another place with `--store`";
    Some(Finding::new("file_system", Severity::Note, path.display(), warning, remedy))
}

fn mend_all(
    location: &Location,
    path: &Path,
    context: &Context,
    found: &[Finding],
) -> Result<(), StoreError> {
    siblings::mend(path)?;
    let is_found =
        |checks: &[&str]| found.iter().any(|finding| checks.contains(&finding.check) && finding.is_open());
    if let Location::Sqlite(path) = location
        && is_found(&["index", "stray_row", "excerpt", "node", "counters"])
    {
        sqlite::mend(path)?;
    }
    if is_found(&["node", "gate"]) {
        let request = Request { command: Command::Settle, context: context.clone() };
        Committer::open(location).commit(&[request])?;
    }
    Ok(())
}
