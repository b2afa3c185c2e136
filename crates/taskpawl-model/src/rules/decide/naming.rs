//! Identity of a plan: the file it belongs to, and the ids of its tasks in the store.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::command::refusal::Refusal;
use crate::command::{Apply, ApplyReport};
use crate::plan::PlanSource;
use crate::rules::draft::{Decided, Draft};
use crate::task::event::{EventKind, PlanApplied};
use crate::task::record::PlanRecord;
use crate::value::{Key, TaskId, check_id};
use crate::view::Query;

/// Identity of a plan, and the ids of its file that this apply found taken.
#[derive(Debug, Clone, Default)]
pub(super) struct Naming {
    /// Path, prefix and prefixed ids; the other fields are unchanged.
    pub(super) record: PlanRecord,
    new: Vec<TaskId>,
}

impl Naming {
    /// Returns whether file, prefix and prefixed ids are the same as before.
    pub(super) fn is_of(&self, before: &PlanRecord) -> bool {
        let now = &self.record;
        (&now.path, &now.prefix, &now.prefixed) == (&before.path, &before.prefix, &before.prefixed)
    }

    /// Returns the apply with the ids used in the store.
    pub(super) fn renamed<'a>(&self, apply: &'a Apply) -> Cow<'a, Apply> {
        if self.record.prefix.is_none() && self.record.prefixed.is_empty() {
            return Cow::Borrowed(apply);
        }
        let ids = apply.plan.tasks.iter().filter_map(|task| task.id.as_ref());
        let ids: HashMap<TaskId, TaskId> = ids.map(|id| (id.clone(), self.stored_id(apply, id))).collect();
        let mut apply = apply.clone();
        apply.plan.rename_ids(&ids);
        Cow::Owned(apply)
    }

    /// Returns the id used in the store. Ids of an instance begin with its current name in the plan. The stored ids begin
    /// with the name of its first apply, which differs after a rename.
    fn stored_id(&self, apply: &Apply, id: &TaskId) -> TaskId {
        let in_file = id.as_str().strip_prefix(&apply.name).and_then(|rest| rest.strip_prefix('.'));
        match in_file.filter(|_| apply.plan.is_instance) {
            Some(in_file) => self.record.stored_id(&TaskId::from(in_file)),
            None => self.record.stored_id(id),
        }
    }

    pub(super) fn tell(&self, apply: &Apply, report: &mut ApplyReport) {
        // The caller chose the prefix of an instance, so reporting it would be noise.
        if !apply.plan.is_instance {
            report.prefix.clone_from(&self.record.prefix);
        }
        report.prefixed.clone_from(&self.new);
    }
}

impl Draft<'_> {
    /// Determines the identity of a plan. The prefix is chosen at the first apply and kept, so that later tasks of
    /// other plans do not rename anything.
    pub(super) fn naming(&self, apply: &Apply) -> Decided<Naming> {
        let stored = self.view.plan(&apply.name)?;
        let mut naming = Naming { record: stored.clone().unwrap_or_default(), new: Vec::new() };
        if let Some(source) = &apply.plan.source {
            self.refuse_other_file(&apply.name, source, stored.as_ref())?;
            naming.record.path = Some(source.path.clone());
        }
        if naming.record.prefix.is_some() {
            return Ok(naming);
        }
        // Without the prefix, tasks that its calls add at run time would have the ids of another instance.
        if stored.is_none() && apply.plan.is_instance {
            naming.record.prefix = Some(apply.name.clone());
            return Ok(naming);
        }
        let taken = self.taken_ids(apply, &naming)?;
        if stored.is_none() && !taken.is_empty() {
            naming.record.prefix = Some(apply.name.clone());
            return Ok(naming);
        }
        for id in taken {
            naming.record.prefixed.insert(id.clone(), TaskId::from(format!("{}.{id}", apply.name)));
            naming.new.push(id);
        }
        Ok(naming)
    }

    /// Returns the ids in a plan file that belong to a task outside the plan, including deleted ones.
    fn taken_ids(&self, apply: &Apply, naming: &Naming) -> Decided<Vec<TaskId>> {
        let mut taken = Vec::new();
        // An empty store has no ids. This is the usual case, and it saves one read for each task.
        if self.view.next_key()? == Key(0) {
            return Ok(taken);
        }
        let instance = format!("{}.", apply.name);
        let ids = apply.plan.tasks.iter().filter_map(|task| task.id.as_ref());
        for id in ids.filter(|id| !naming.record.prefixed.contains_key(*id)) {
            // Ids of an instance begin with its name and never get a second prefix.
            let is_taken = match self.find_id(id.as_str())? {
                _ if id.as_str().starts_with(&instance) => false,
                Some(key) => self.look_at(key)?.plan.as_deref() != Some(&*apply.name),
                None => self
                    .view
                    .deleted_id(id.as_str())?
                    .is_some_and(|owner| owner.as_ref() != Some(&apply.name)),
            };
            if is_taken {
                taken.push(id.clone());
            }
        }
        Ok(taken)
    }

    /// Refuses a file that would silently replace another plan, and a renamed plan in a known file.
    fn refuse_other_file(&self, name: &str, source: &PlanSource, stored: Option<&PlanRecord>) -> Decided<()> {
        let (name, given) = (name.to_owned(), source.path.clone());
        let Some(stored) = stored else {
            let is_same = |plan: &PlanRecord| plan.path.as_ref() == Some(&given);
            return match self.view.plans()?.into_iter().find(is_same) {
                Some(before) => Err(Refusal::PlanRenamed { from: before.name, to: name, path: given }.into()),
                None => Ok(()),
            };
        };
        match stored.path.clone().filter(|path| *path != given && !source.is_moved) {
            Some(path) => Err(Refusal::PlanElsewhere { plan: name, path, given }.into()),
            None => Ok(()),
        }
    }

    /// Renames a plan. Its tasks keep their ids.
    pub(super) fn rename_plan(&mut self, from: &str, to: &str) -> Decided<()> {
        check_id(to).map_err(Refusal::from)?;
        let Some(mut record) = self.view.plan(from)? else {
            return Err(Refusal::NothingSelected { selector: format!("plan:{from}") }.into());
        };
        if self.view.plan(to)?.is_some() {
            return Err(super::fields::invalid("name", format!("the plan `{to}` already exists")).into());
        }
        let keys = self.view.find(&Query { plan: Some(from.to_owned()), ..Query::default() })?;
        for key in &keys {
            self.rename_plan_of(*key, to.into())?;
        }
        to.clone_into(&mut record.name);
        self.changes.plans_gone.push(from.to_owned());
        self.changes.plans.push(record);
        let changed = keys.len() as u64;
        let applied = PlanApplied { plan: to.to_owned(), created: 0, changed, pruned: 0, notify: None };
        self.emit(None, EventKind::Applied(Box::new(applied)))
    }
}
