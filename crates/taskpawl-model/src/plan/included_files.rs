//! The files that a plan includes: where they come from, and which are being read.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

use super::parse::parse_included;
use super::{Plan, PlanErrors, PlanProblem};
use crate::advice::hint::Hint;

/// The most plans that include one another, the first one not counted.
const MAX_DEPTH: usize = 8;

/// Reads the plans that a plan includes.
pub trait PlanFiles: fmt::Debug {
    /// Returns the file of the plan that is read itself, as in [`IncludedText::file`]; `None` if it is in no file.
    fn file(&self) -> Option<String>;

    /// Reads a plan. `name` is as its author wrote it, and `by` is the file that includes it: `None` for the plan that is read
    /// itself.
    ///
    /// # Errors
    /// There is no such plan, or it must not or cannot be read.
    fn read(&self, name: &str, by: Option<&str>) -> Result<IncludedText, IncludeError>;
}

/// The text of an included plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncludedText {
    /// The file, for messages. Equal for the same file, however it was named.
    pub file: String,
    /// The text.
    pub text: String,
}

/// The reason why a plan is not included.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IncludeError {
    /// The text that includes it is in no file.
    #[error("`include` is for plan files, and this text is in none")]
    NoFiles,
    /// There is no such file.
    #[error("there is no plan file `{file}`")]
    Missing {
        /// The file.
        file: String,
    },
    /// No plan has this name.
    #[error("no plan is named `{name}`")]
    Unnamed {
        /// The name.
        name: String,
        /// The most similar name.
        near: Option<String>,
    },
    /// The file is outside of the project.
    #[error("`{file}` is neither in the project nor below the directory of the plan that includes it")]
    Outside {
        /// The file.
        file: String,
    },
    /// The file does not have the name of a plan file.
    #[error("`{file}` is not the name of a plan file")]
    Ending {
        /// The file.
        file: String,
    },
    /// The file cannot be read.
    #[error("`{file}` cannot be read: {why}")]
    Unreadable {
        /// The file.
        file: String,
        /// The reason.
        why: String,
    },
}

impl IncludeError {
    pub(super) fn hint(&self) -> Option<Hint> {
        if let Self::Unnamed { near: Some(near), .. } = self {
            return Some(Hint::new("did you mean ").data(near).text("?"));
        }
        Some(Hint::new(match self {
            Self::NoFiles => "write the tasks here, or put the plan into a file and apply that",
            Self::Missing { .. } => "a path begins at the directory of the file that includes it",
            Self::Unnamed { .. } => {
                "write the path of a file, such as `./check.yaml`, or a name of `plan list`"
            }
            Self::Outside { .. } => "copy it into the project, or write its name if `plan list` has it",
            Self::Ending { .. } => "plan files end in `.yaml`, `.yml` or `.json`",
            Self::Unreadable { .. } => return None,
        }))
    }
}

/// The files of the plan that is being read.
#[derive(Debug, Clone, Default)]
pub(super) struct Includes<'f> {
    files: Option<&'f dyn PlanFiles>,
    /// The files from the plan itself to the one that is being read.
    chain: Vec<String>,
    /// The number of plans that include one another, up to the one that is being read.
    depth: usize,
    /// The number of further levels below the one that is being read.
    height: usize,
    /// Each file is read once, however often it is included.
    known: Rc<RefCell<HashMap<String, Known>>>,
}

type Known = Result<Rc<IncludedPlan>, PlanErrors>;

/// A plan that another one includes, with the plans that it includes itself.
#[derive(Debug)]
pub(super) struct IncludedPlan {
    pub(super) plan: Plan,
    /// The number of levels below it.
    pub(super) height: usize,
}

/// The reason why an included plan cannot be used.
pub(super) enum Unloaded {
    Problem(PlanProblem, Option<Hint>),
    /// The plan in this file has errors.
    Faulty(String, PlanErrors),
}

impl<'f> Includes<'f> {
    pub(super) fn of(files: &'f dyn PlanFiles) -> Self {
        Self { files: Some(files), chain: files.file().into_iter().collect(), ..Self::default() }
    }

    /// Returns whether the plan that is being read is included by another one.
    pub(super) fn is_included(&self) -> bool {
        self.depth > 0
    }

    pub(super) fn height(&self) -> usize {
        self.height
    }

    /// Reads an included plan, and returns its file as well.
    pub(super) fn load(&mut self, name: &str) -> Result<(String, Rc<IncludedPlan>), Unloaded> {
        let refused = |error: IncludeError| {
            let hint = error.hint();
            Unloaded::Problem(error.into(), hint)
        };
        let files = self.files.ok_or_else(|| refused(IncludeError::NoFiles))?;
        let by = if self.is_included() { self.chain.last().map(String::as_str) } else { None };
        let IncludedText { file, text } = files.read(name, by).map_err(refused)?;
        if let Some(first) = self.chain.iter().position(|above| *above == file) {
            let circle = self.chain[first..].iter().chain([&file]).cloned().collect();
            let hint = "put the tasks that both need into a third plan";
            return Err(Unloaded::Problem(PlanProblem::IncludeCircle { circle }, Some(hint.into())));
        }
        let too_deep = || Unloaded::Problem(PlanProblem::IncludeDepth { limit: MAX_DEPTH }, None);
        if self.depth >= MAX_DEPTH {
            return Err(too_deep());
        }
        let known = self.known.borrow().get(&file).cloned();
        let known = known.unwrap_or_else(|| {
            let read = parse_included(&text, self.below(file.clone())).map(Rc::new);
            self.known.borrow_mut().insert(file.clone(), read.clone());
            read
        });
        let included = known.map_err(|errors| Unloaded::Faulty(file.clone(), errors))?;
        if self.depth + 1 + included.height > MAX_DEPTH {
            return Err(too_deep());
        }
        self.height = self.height.max(1 + included.height);
        Ok((file, included))
    }

    /// Returns the state for reading a file that is included by the one that is being read.
    fn below(&self, file: String) -> Self {
        let chain = self.chain.iter().cloned().chain([file]).collect();
        Self { files: self.files, chain, depth: self.depth + 1, height: 0, known: Rc::clone(&self.known) }
    }
}
