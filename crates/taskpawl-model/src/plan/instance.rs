//! Instances: a plan under another name, with its own ids.

use std::collections::HashMap;

use super::Plan;
use crate::value::TaskId;

impl Plan {
    /// Returns the plan as an instance called `name`.
    ///
    /// Every id gets the prefix `name.`, so that it shares no tasks with the plan itself or with other instances. These
    /// ids may be longer than authors may write. References to tasks outside the plan do not change. Tasks without ids
    /// are known by their names within the instance and do not change either.
    #[must_use]
    pub fn into_instance(mut self, name: &str) -> Self {
        let own = |id: &TaskId| TaskId::from(format!("{name}.{id}"));
        let ids = self.tasks.iter().filter_map(|task| task.id.clone());
        let ids: HashMap<TaskId, TaskId> = ids.map(|id| (id.clone(), own(&id))).collect();
        self.rename_ids(&ids);
        self.name = Some(name.to_owned());
        self.source = None;
        self.is_instance = true;
        self
    }

    /// Renames tasks, also in the links of all tasks.
    pub(crate) fn rename_ids(&mut self, ids: &HashMap<TaskId, TaskId>) {
        let rename = |id: &mut TaskId| {
            if let Some(new) = ids.get(id) {
                id.clone_from(new);
            }
        };
        for task in &mut self.tasks {
            task.id.iter_mut().for_each(rename);
            if let Some(links) = &mut task.spec.links {
                let links = [&mut links.relates_to, &mut links.discovered_from, &mut links.duplicates];
                links.into_iter().flatten().for_each(rename);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::parse_plan;

    #[test]
    fn an_instance_has_its_own_ids() {
        let text =
            "tasks: [{id: a, subtasks: [{id: b, links: {relatesTo: [a, far]}}]}, {name: c, needs: [a]}]";
        let plan = parse_plan(text).unwrap().into_instance("two");
        let ids: Vec<_> = plan.tasks.iter().map(|task| task.id.as_ref().map(ToString::to_string)).collect();
        assert_eq!(ids, [Some("two.a".to_owned()), Some("two.b".to_owned()), None]);
        let links = plan.tasks[1].spec.links.as_ref().unwrap();
        assert_eq!(links.relates_to, ["two.a".into(), "far".into()]);
        assert_eq!((plan.tasks[1].parent, plan.tasks[2].needs.as_slice()), (Some(0), &[0][..]));
        assert_eq!(plan.name.as_deref(), Some("two"));
    }
}
