//! How a plan is known: which file it belongs to, and what its tasks are called in the store.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use crate::command::{Apply, ApplyReport};
use crate::draft::{Decided, Draft};
use crate::event::{EventKind, PlanApplied};
use crate::record::PlanRecord;
use crate::refusal::Refusal;
use crate::view::Query;
use crate::{Key, PlanSource, TaskId, check_id};

/// The file of a plan, and the ids of its tasks where these are not those of the file.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Naming {
    /// The path of the file below the project.
    pub(super) path: Option<String>,
    /// What every id begins with, and a dot: decided when the plan is applied first.
    pub(super) prefix: Option<String>,
    /// Ids of tasks that came later and were taken, by what the file calls them.
    pub(super) prefixed: BTreeMap<TaskId, TaskId>,
    /// Those of them that this apply adds.
    new: Vec<TaskId>,
}

impl Naming {
    fn of(record: &PlanRecord) -> Self {
        let PlanRecord { path, prefix, prefixed, .. } = record.clone();
        Self { path, prefix, prefixed, new: Vec::new() }
    }

    /// Returns whether a plan is known in the same way as before.
    pub(super) fn is_of(&self, record: &PlanRecord) -> bool {
        (&self.path, &self.prefix, &self.prefixed) == (&record.path, &record.prefix, &record.prefixed)
    }

    /// Returns the apply with the ids that the store has.
    pub(super) fn renamed<'a>(&self, apply: &'a Apply) -> Cow<'a, Apply> {
        let own = |id: &TaskId| match &self.prefix {
            Some(prefix) => Some(prefixed(prefix, id)),
            None => self.prefixed.get(id).cloned(),
        };
        let ids = apply.plan.tasks.iter().filter_map(|task| task.id.as_ref());
        let ids: HashMap<TaskId, TaskId> = ids.filter_map(|id| Some((id.clone(), own(id)?))).collect();
        if ids.is_empty() {
            return Cow::Borrowed(apply);
        }
        let mut apply = apply.clone();
        apply.plan.rename_ids(&ids);
        Cow::Owned(apply)
    }

    pub(super) fn tell(&self, report: &mut ApplyReport) {
        report.prefix.clone_from(&self.prefix);
        report.prefixed.clone_from(&self.new);
    }
}

fn prefixed(prefix: &str, id: &TaskId) -> TaskId {
    TaskId::from(format!("{prefix}.{id}"))
}

impl Draft<'_> {
    /// Decides how a plan is known. Whether its ids are prefixed is decided once, so that a later task of another plan changes nothing.
    pub(super) fn naming(&self, apply: &Apply) -> Decided<Naming> {
        let stored = self.view.plan(&apply.name)?;
        let mut naming = stored.as_ref().map(Naming::of).unwrap_or_default();
        if let Some(source) = &apply.plan.source {
            self.refuse_other_file(&apply.name, source, stored.as_ref())?;
            naming.path = Some(source.path.clone());
        }
        if naming.prefix.is_some() {
            return Ok(naming);
        }
        let taken = self.taken_ids(apply, &naming)?;
        if stored.is_none() && !taken.is_empty() {
            naming.prefix = Some(apply.name.clone());
            return Ok(naming);
        }
        for id in taken {
            naming.prefixed.insert(id.clone(), prefixed(&apply.name, &id));
            naming.new.push(id);
        }
        Ok(naming)
    }

    /// Returns the ids of a plan that tasks have, or had, which are not of the plan.
    fn taken_ids(&self, apply: &Apply, naming: &Naming) -> Decided<Vec<TaskId>> {
        let mut taken = Vec::new();
        // Most plans come into a store of their own.
        if self.view.next_key()? == Key(0) {
            return Ok(taken);
        }
        let instance = format!("{}.", apply.name);
        let ids = apply.plan.tasks.iter().filter_map(|task| task.id.as_ref());
        for id in ids.filter(|id| !naming.prefixed.contains_key(*id)) {
            // The ids of an instance have its name already.
            let is_taken = match self.find_id(id.as_str())? {
                _ if id.as_str().starts_with(&instance) => false,
                Some(key) => self.look_at(key)?.plan.as_deref() != Some(&*apply.name),
                None => self.view.deleted_id(id.as_str())?.is_some_and(|owner| owner.as_ref() != Some(&apply.name)),
            };
            if is_taken {
                taken.push(id.clone());
            }
        }
        Ok(taken)
    }

    /// Two files are not one plan by accident, nor one file two plans.
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

    /// Gives a plan another name. Its tasks keep their ids.
    pub(super) fn rename_plan(&mut self, from: &str, to: &str) -> Decided<()> {
        check_id(to).map_err(Refusal::from)?;
        let Some(mut record) = self.view.plan(from)? else {
            return Err(Refusal::NothingSelected { selector: format!("plan:{from}") }.into());
        };
        if self.view.plan(to)?.is_some() {
            return Err(super::author::invalid("name", format!("there is a plan `{to}` already")).into());
        }
        let keys = self.view.find(&Query { plan: Some(from.to_owned()), ..Query::default() })?;
        for key in &keys {
            self.update_spec(*key, |record| record.plan = Some(to.into()))?;
        }
        to.clone_into(&mut record.name);
        self.changes.plans_gone.push(from.to_owned());
        self.changes.plans.push(record);
        let changed = keys.len() as u64;
        let applied = PlanApplied { plan: to.to_owned(), created: 0, changed, pruned: 0, notify: None };
        self.emit(None, EventKind::Applied(Box::new(applied)))
    }
}
