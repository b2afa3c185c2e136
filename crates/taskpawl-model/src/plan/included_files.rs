//! The plans that a plan includes: which are known, and which are being read.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use super::{IncludeError, IncludedText, Plan, PlanErrors, PlanFiles, PlanProblem};
use crate::advice::hint::Hint;
use taskpawl_json::Position;

/// The most plans that include one another, the first one not counted.
const MAX_DEPTH: usize = 8;

/// The files of the plan that is being read.
#[derive(Debug, Clone, Default)]
pub(super) struct Includes<'f> {
    source: Option<Source<'f>>,
    /// The files from the plan itself to the one that is being read.
    chain: Vec<String>,
    /// The number of plans that include one another, up to the one that is being read.
    depth: usize,
    /// The number of further levels below the one that is being read.
    height: usize,
    /// Each file is read once, however often it is included.
    known: Rc<RefCell<HashMap<String, Known>>>,
}

/// The source of included plans. The parser is given, because it reads the plans that an included one includes itself.
#[derive(Debug, Clone, Copy)]
struct Source<'f> {
    files: &'f dyn PlanFiles,
    parse: ParseIncluded,
}

/// Parses a plan that another one includes, with the plans that it includes itself.
pub(super) type ParseIncluded = fn(&str, Includes<'_>) -> Result<IncludedPlan, PlanErrors>;

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

/// Tools and environment variables that included plans need from outside.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    pub(super) tools: Vec<String>,
    pub(super) variables: Vec<String>,
    pub(super) at: Position,
}

impl Wanted {
    /// Adds the needs of the included plans to those of the plan.
    pub(super) fn add_to(self, plan: &mut Plan) {
        let Self { tools, variables, at } = self;
        if plan.requires.env.is_empty() && !variables.is_empty() {
            plan.requires.at = at;
        }
        for (own, more) in [(&mut plan.tools, tools), (&mut plan.requires.env, variables)] {
            for name in more {
                if !own.contains(&name) {
                    own.push(name);
                }
            }
        }
    }
}

impl<'f> Includes<'f> {
    pub(super) fn of(files: &'f dyn PlanFiles, parse: ParseIncluded) -> Self {
        Self {
            source: Some(Source { files, parse }),
            chain: files.file().into_iter().collect(),
            ..Self::default()
        }
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
        let Source { files, parse } = self.source.ok_or_else(|| refused(IncludeError::NoFiles))?;
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
            let read = parse(&text, self.below(file.clone())).map(Rc::new);
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
        Self { source: self.source, chain, depth: self.depth + 1, height: 0, known: Rc::clone(&self.known) }
    }
}
