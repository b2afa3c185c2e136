//! Plan mutations by a running call: it adds new tasks and never changes work planned by others.

use std::collections::BTreeMap;

use crate::command::refusal::Refusal;
use crate::command::{ApplyReport, CallMutation, NewTask, PlanMutation};
use crate::plan::Plan;
use crate::rules::draft::{Decided, Draft};
use crate::task::record::{CallRecord, TaskRecord};
use crate::task::spec::{Origin, PlanAccess};
use crate::task::status::{CallStatus, TaskStatus};
use crate::value::{Key, TaskId, check_id};

use super::emit::{Emission, Standing, is_found_during, refuse_started};

/// Most existing ids that are searched for tasks added earlier without an id.
const MAX_NAMELESS: usize = 10_000;

impl Draft<'_> {
    pub(super) fn grow(&mut self, grow: &CallMutation) -> Decided<()> {
        let (by, call) = self.grower(grow)?;
        self.write_as(Origin::Agent);
        match &grow.mutation {
            PlanMutation::Create(task) => self.create_for(&by, task),
            PlanMutation::Join(plan) => self.join(&by, &call, Plan::clone(plan)),
            PlanMutation::AddCall { id, call } => {
                let key = self.resolve_in(by.plan.as_deref(), id)?;
                let record = self.refuse_unless_added(key, &by)?;
                refuse_started(&record, "its tool calls")?;
                self.add_call_to(record.id.as_str(), call)
            }
            PlanMutation::AddDependency { id, on } => {
                let key = self.resolve_in(by.plan.as_deref(), id)?;
                let on = self.stored_reference(&by, on)?;
                let on_key = self.resolve_beside(key, &on)?;
                let record = self.task(key)?;
                if !self.is_added_by(key, &record, &by)? {
                    refuse_outside(&record, &by)?;
                    self.refuse_unless_added(on_key, &by)?;
                }
                refuse_started(&record, "its dependencies")?;
                self.add_dependency(record.id.as_str(), &on)
            }
            PlanMutation::Note { id, text } => {
                let key = self.resolve_in(by.plan.as_deref(), id)?;
                let record = self.task(key)?;
                if !self.is_added_by(key, &record, &by)? {
                    refuse_outside(&record, &by)?;
                }
                self.note(record.id.as_str(), text)
            }
        }
    }

    /// Returns the task and the call that make the addition, if the call still runs and has access.
    fn grower(&mut self, grow: &CallMutation) -> Decided<(TaskRecord, CallRecord)> {
        let over = |id: TaskId, status: &str| {
            let (call, status) = (grow.call.to_string(), status.to_owned());
            Refusal::CallNotRunning { id, call, status }
        };
        let Some(record) = self.view.task(grow.task)? else {
            return Err(over(TaskId::default(), "deleted").into());
        };
        let call = self.calls(grow.task)?.iter().find(|call| call.id == grow.call).cloned();
        let Some(call) = call else { return Err(over(record.id, "deleted").into()) };
        let is_held =
            matches!(&record.body.state, TaskStatus::InProgress { claim } if claim.run == self.context.run);
        let is_current = record.body.attempt == grow.attempt && call.body.attempts == grow.start;
        if !is_held || !is_current || call.body.status != CallStatus::Running {
            let status = if is_current { call.body.status.as_str() } else { "over" };
            return Err(over(record.id, status).into());
        }
        match call.spec.plan_access {
            Some(PlanAccess::Add) => Ok((record, call)),
            access @ (Some(PlanAccess::Read) | None) => {
                let what = "this command would change it".to_owned();
                Err(Refusal::BeyondAccess { access, what }.into())
            }
        }
    }

    /// Returns whether `record` was added by a call of the task `by`.
    ///
    /// The link `discoveredFrom` alone proves nothing, because authors can write it. The first event must be one of a
    /// run.
    fn is_added_by(&self, key: Key, record: &TaskRecord, by: &TaskRecord) -> Decided<bool> {
        if !is_found_during(record, &by.id) {
            return Ok(false);
        }
        if self.is_new(key) {
            return Ok(true);
        }
        let first = self.view.events(0, Some(key), 1)?;
        Ok(first.first().is_some_and(|event| event.run.is_some()))
    }

    fn refuse_unless_added(&self, key: Key, by: &TaskRecord) -> Decided<TaskRecord> {
        let record = self.task(key)?;
        if self.is_added_by(key, &record, by)? {
            return Ok(record);
        }
        Err(beyond(format!("it did not add task `{}`", record.id)).into())
    }

    /// Returns the stored id for a reference that uses the ids of the plan's file; otherwise the reference itself.
    fn stored_reference(&self, by: &TaskRecord, text: &str) -> Decided<String> {
        let stored = self.plan_of(by)?.stored_id(&TaskId::from(text));
        let is_there = self.find_id(stored.as_str())?.is_some();
        Ok(if is_there { stored.to_string() } else { text.to_owned() })
    }

    fn create_for(&mut self, by: &TaskRecord, task: &NewTask) -> Decided<()> {
        let mut task = task.clone();
        let plan = self.plan_of(by)?;
        task.id = if task.id.as_str().is_empty() {
            self.id_from_name(plan.prefix.as_deref(), &task.spec.name, |_| false)?
        } else {
            check_id(task.id.as_str()).map_err(Refusal::from)?;
            plan.stored_id(&task.id)
        };
        if let Some(parent) = &task.parent {
            let parent = self.resolve_in(by.plan.as_deref(), parent)?;
            refuse_started(&self.refuse_unless_added(parent, by)?, "its subtasks")?;
        }
        let found_during = &mut task.spec.links.get_or_insert_default().discovered_from;
        if !found_during.contains(&by.id) {
            found_during.push(by.id.clone());
        }
        task.plan = by.plan.clone().map(String::from);
        self.create_stored(&task)
    }

    fn join(&mut self, by: &TaskRecord, call: &CallRecord, mut plan: Plan) -> Decided<()> {
        self.name_known(by, call, &mut plan)?;
        let known = self.plan_of(by)?;
        for id in plan.tasks.iter().filter_map(|task| task.id.as_ref()) {
            let id = known.stored_id(id);
            if let Some(key) = self.find_id(id.as_str())?
                && !self.is_added_by(key, &self.task(key)?, by)?
            {
                return Err(Refusal::DuplicateId { id, deleted: false }.into());
            }
        }
        let joined = Emission::new(self, by, call, &plan)?.join(self, &BTreeMap::new())?;
        let mut report = ApplyReport {
            plan: by.plan.clone().map(String::from).unwrap_or_default(),
            prefix: known.prefix,
            ..ApplyReport::default()
        };
        for (id, key, standing) in joined {
            match standing {
                Standing::New => report.created.push(id),
                Standing::Back => report.changed.push(id),
                Standing::Known if self.has_changed(key) => report.changed.push(id),
                Standing::Known => report.unchanged += 1,
            }
        }
        self.answer.tasks.extend(report.created.iter().chain(&report.changed).cloned());
        self.answer.applied = Some(report);
        Ok(())
    }

    /// Gives tasks without ids the id of the task with the same name that this call added earlier, so that repeating it
    /// is idempotent.
    fn name_known(&self, by: &TaskRecord, call: &CallRecord, plan: &mut Plan) -> Decided<()> {
        if plan.tasks.iter().all(|task| task.id.is_some()) {
            return Ok(());
        }
        let mut known = BTreeMap::new();
        let prefix = format!("{}.{}.", by.id, call.id);
        for id in self.view.ids_with_prefix(&prefix, MAX_NAMELESS)? {
            if let Some(key) = self.find_id(id.as_str())? {
                known.insert(self.task(key)?.spec.name.clone(), id);
            }
        }
        for task in plan.tasks.iter_mut().filter(|task| task.id.is_none()) {
            task.id = known.remove(&task.spec.name);
        }
        Ok(())
    }

    fn has_changed(&self, key: Key) -> bool {
        self.changes.tasks.get(&key).is_some_and(|change| change.spec_changed)
            || self.changes.edges.iter().any(|edge| edge.task == key)
    }
}

fn beyond(what: String) -> Refusal {
    Refusal::BeyondAccess { access: Some(PlanAccess::Add), what }
}

/// Refuses changes to tasks of another plan. A task without a plan is accessible only to its own calls.
fn refuse_outside(record: &TaskRecord, by: &TaskRecord) -> Decided<()> {
    if record.id == by.id || (by.plan.is_some() && record.plan == by.plan) {
        return Ok(());
    }
    Err(beyond(format!("task `{}` is not part of its plan", record.id)).into())
}
