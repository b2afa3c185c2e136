//! Names of tasks in expressions: which task of the plan each one is, and whether it has ended before.

use std::collections::BTreeSet;

use taskpawl_text::nearest;

use super::PlanProblem;
use super::linker::{Found, Linker};
use super::node::shortened;
use super::site::Stage;

impl Linker<'_, '_> {
    /// Returns the draft to which `text` refers in an expression; `None` if only the store can tell.
    pub(super) fn refer(
        &self,
        number: usize,
        text: &str,
        stage: Stage,
    ) -> Result<Option<usize>, (PlanProblem, Option<String>)> {
        let other = match self.find(text) {
            Found::One(other) => other,
            Found::Several(first, second) => {
                let problem = PlanProblem::Ambiguous {
                    name: text.to_owned(),
                    first: self.at(first),
                    second: self.at(second),
                };
                return Err((problem, Some("give the tasks ids and use those".to_owned())));
            }
            Found::Nobody if self.reaches_outside(number) => return Ok(None),
            Found::Nobody => return Err(self.unknown_task(number, text)),
        };
        if other == number {
            let problem = PlanProblem::OwnResult { task: self.label(number) };
            return Err((
                problem,
                Some(
                    "its own values are in `context`: `context.CALL` for the result of an earlier call"
                        .to_owned(),
                ),
            ));
        }
        if self.is_below(other, number) {
            return match stage {
                Stage::Args(_) | Stage::CallWhen(_) | Stage::Until => Ok(Some(other)),
                Stage::When | Stage::List | Stage::Key | Stage::With | Stage::Returns => Err((
                    self.not_before(number, other),
                    Some("this is evaluated before the subtasks start".to_owned()),
                )),
            };
        }
        if self.is_before(number, other) {
            return Ok(Some(other));
        }
        let hint = if self.is_below(number, other) {
            "a task ends after its subtasks, so they cannot see its results".to_owned()
        } else if self.is_before(other, number) {
            format!("`{}` starts only after `{}` has ended", self.label(other), self.label(number))
        } else {
            format!("add `{}` to its `needs`", self.label(other))
        };
        Err((self.not_before(number, other), Some(hint)))
    }

    /// Returns the draft with this id or name, if it is unique.
    pub(super) fn one(&self, text: &str) -> Option<usize> {
        if let Found::One(other) = self.find(text) { Some(other) } else { None }
    }

    fn not_before(&self, number: usize, other: usize) -> PlanProblem {
        PlanProblem::NoDependency { task: self.label(number), other: self.label(other) }
    }

    fn unknown_task(&self, number: usize, text: &str) -> (PlanProblem, Option<String>) {
        let dashed = format!("{text}-");
        let longer = self.others(number).find(|id| id.starts_with(&dashed));
        let hint = match (nearest(text, self.others(number)), longer) {
            (Some(near), _) => Some(format!("did you mean `{near}`?")),
            (None, Some(longer)) => Some(format!("did you mean `tasks['{longer}']`?")),
            (None, None) => Some("an id in the store must be one of its `needs`".to_owned()),
        };
        (PlanProblem::UnknownTask { reference: shortened(text) }, hint)
    }

    /// Returns whether a draft is a direct or indirect subtask of another.
    fn is_below(&self, mut number: usize, above: usize) -> bool {
        // The bound stops at cycles of parents, which are reported elsewhere.
        for _ in 0..=self.parents.len() {
            match self.parents[number] {
                Some(parent) if parent == above => return true,
                Some(parent) => number = parent,
                None => return false,
            }
        }
        false
    }

    /// Returns the draft and all its ancestors.
    fn line(&self, number: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(number), |number| self.parents[*number]).take(self.parents.len())
    }

    /// Returns whether a draft is finished, with any status, before another starts.
    fn is_before(&self, number: usize, wanted: usize) -> bool {
        let direct = |other: &(usize, usize)| other.0 == wanted;
        if self.line(number).any(|above| self.needs[above].iter().any(direct)) {
            return true;
        }
        let mut is_found = false;
        self.walk_before(number, |other| {
            is_found |= other == wanted;
            is_found
        });
        is_found
    }

    /// Returns whether a draft waits for a task outside the plan, directly or through other drafts.
    fn reaches_outside(&self, number: usize) -> bool {
        let mut is_outside = self.line(number).any(|above| !self.outside[above].is_empty());
        if !is_outside {
            self.walk_before(number, |other| {
                is_outside |= self.line(other).any(|above| !self.outside[above].is_empty());
                is_outside
            });
        }
        is_outside
    }

    /// Visits every draft that ends before this one starts, until `enough` returns true.
    fn walk_before(&self, number: usize, mut enough: impl FnMut(usize) -> bool) {
        let mut seen = BTreeSet::new();
        // A task also waits for the dependencies of its ancestors. A finished task implies that all its subtasks are
        // finished.
        let mut stack: Vec<usize> =
            self.line(number).flat_map(|above| self.needs[above].iter().map(|need| need.0)).collect();
        while let Some(other) = stack.pop() {
            if !seen.insert(other) {
                continue;
            }
            if enough(other) {
                return;
            }
            stack.extend(&self.children[other]);
            stack.extend(self.line(other).flat_map(|above| self.needs[above].iter().map(|need| need.0)));
        }
    }
}
