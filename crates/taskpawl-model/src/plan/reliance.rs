//! Manual tasks whose reports influence calls. If a model reports the result, these calls need an approval.

use std::collections::BTreeSet;

use super::types::{Plan, PlanTask};
use crate::expr::{self, ExprError, Mention, Name};
use crate::task::spec::CallSpec;

/// A task whose calls depend on the report of a manual task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reliance {
    /// The task with the calls, as a position in [`Plan::tasks`].
    pub task: usize,
    /// The manual task, as a position in [`Plan::tasks`].
    pub on: usize,
}

impl Plan {
    /// Returns the tasks that act on the report of a manual task which any actor may end, in the order of the plan.
    /// Tasks whose calls all satisfy `is_read_only` are left out.
    pub fn reliances(&self, is_read_only: impl Fn(&CallSpec) -> bool) -> Vec<Reliance> {
        let acts = |task: &PlanTask| task.calls.iter().any(|call| !is_read_only(&call.spec));
        let mut acting: Vec<bool> = self.tasks.iter().map(acts).collect();
        // Subtasks come after their parents, so in reverse order each one is known before its parent.
        for (position, task) in self.tasks.iter().enumerate().rev() {
            if let Some(parent) = task.parent.filter(|_| acting[position]) {
                acting[parent] = true;
            }
        }
        let parents: BTreeSet<usize> = self.tasks.iter().filter_map(|task| task.parent).collect();
        let is_open = |position: usize| {
            let task = &self.tasks[position];
            let is_automatic =
                task.spec.milestone || task.spec.for_each.is_some() || parents.contains(&position);
            task.calls.is_empty() && !is_automatic && !task.spec.is_for_person()
        };
        let tasks = self.tasks.iter().enumerate().filter(|(position, _)| acting[*position]);
        let reliances = tasks.flat_map(|(task, spec)| {
            let on = deciding_tasks(spec).into_iter().filter(|on| is_open(*on));
            on.map(move |on| Reliance { task, on }).collect::<Vec<_>>()
        });
        reliances.collect()
    }
}

/// Returns the positions of the tasks whose values influence the calls of a task.
fn deciding_tasks(task: &PlanTask) -> BTreeSet<usize> {
    let mut positions = BTreeSet::new();
    // Expressions with syntax errors were reported when the plan was read.
    let mut add = |mentions: Result<Vec<Mention>, ExprError>| {
        for mention in mentions.unwrap_or_default() {
            if let Name::Task { task: text, .. } = &mention.name {
                positions.extend(task.names.get(text).copied());
            }
        }
    };
    if let Some(when) = &task.spec.when {
        add(expr::condition_mentions(when));
    }
    if let Some(for_each) = &task.spec.for_each {
        let list = &for_each.list;
        add(list.as_str().map_or_else(|| expr::mentions(list), expr::condition_mentions));
    }
    for call in &task.calls {
        if let Some(when) = &call.spec.when {
            add(expr::condition_mentions(when));
        }
        add(expr::deciding_mentions(&call.spec.tool_name, &call.spec.args));
    }
    positions
}

#[cfg(test)]
mod tests {
    use crate::plan::parse_plan;

    #[test]
    fn calls_that_act_on_a_report_are_listed() {
        let plan = parse_plan(
            "tasks:
- {id: m}
- {id: own, assignee: person}
- {id: made, run: make}
- {id: when, needs: m, when: tasks.m.result.ok, run: make}
- {id: list, needs: m, forEach: {in: tasks.m.result}, run: make}
- {id: word, needs: m, run: 'sh -c ${{ tasks.m.result }}'}
- {id: above, needs: m, when: tasks.m.result.ok, subtasks: [{id: below, run: make}]}
- {id: data, needs: m, run: 'echo ${{ tasks.m.result }}'}
- {id: reads, needs: m, when: tasks.m.result.ok, call: {log: {message: a}}}
- {id: person, needs: own, when: tasks.own.result.ok, run: make}
- {id: calls, needs: made, when: tasks.made.result.ok, run: make}
",
        )
        .unwrap();
        let reliances = plan.reliances(|call| call.tool_name == "log");
        let name = |position: usize| plan.tasks[position].id.as_ref().unwrap().as_str();
        let shown: Vec<_> = reliances.iter().map(|found| (name(found.task), name(found.on))).collect();
        assert_eq!(shown, [("when", "m"), ("list", "m"), ("word", "m"), ("above", "m")]);
    }
}
