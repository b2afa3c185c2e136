//! The field `returns` of a plan: the result of a task that includes it.

use taskpawl_text::nearest;

use super::expressions::{Found, Scope};
use super::linker::{Found as FoundTask, Linker};
use super::reader::Reader;
use super::site::{Site, Stage};
use super::{PlanProblem, PlanTask};
use crate::expr::Name;

impl Reader<'_> {
    /// Checks the expressions of `returns`. They are evaluated when all tasks have ended.
    pub(super) fn check_returns(&mut self, linker: &Linker<'_, '_>) {
        let Some(node) = self.returns.filter(|_| !self.is_part) else { return };
        let path = "returns".to_owned();
        let site = Site { draft: None, path, stage: Stage::Returns, node, bare: false, tool: String::new() };
        let (mut found, task) = (Found::new(self.source), PlanTask::default());
        let scope = Scope::new(&task, Stage::Returns, Some(&self.params));
        for mention in found.mentions(&site) {
            let Name::Task { task, .. } = &mention.name else {
                found.scoped(&mention, &scope);
                continue;
            };
            match linker.find(task) {
                FoundTask::One(_) => {}
                FoundTask::Several(first, second) => {
                    let (name, first, second) = (task.clone(), linker.at(first), linker.at(second));
                    let hint = "give the tasks ids and use those".to_owned();
                    found.report(&mention, PlanProblem::Ambiguous { name, first, second }, Some(hint));
                }
                FoundTask::Nobody => {
                    let near = nearest(task, linker.others(usize::MAX));
                    let hint = near.map(|near| format!("did you mean `{near}`?"));
                    found.report(&mention, PlanProblem::UnknownTask { reference: task.clone() }, hint);
                }
            }
        }
        self.errors.append(&mut found.errors);
    }
}
