//! Opening of a task: decides its condition, approval and list once its gate lets it start.
//!
//! They are decided in the same commit in which the gate opens, even if no run is active. When the gate closes again or
//! the task restarts, they are decided again.

use crate::view::ReadGraph;
use std::collections::BTreeMap;

use serde_json::Value;

use crate::expr::Evaluated;
use crate::rules::draft::{Decided, Draft};
use crate::rules::failure::Problem;
use crate::rules::flow::{self, SURPLUS};
use crate::task::limits::needs_opening;
use crate::task::record::{CallRecord, Item, Node, Progress, StatusKind, TaskBody, TaskRecord, Work};
use crate::task::spec::{Approval, CallSpec, TaskSpec};
use crate::task::status::{BlockedReason, Cause, TaskStatus};
use crate::task::trust::{UntrustedValue, ValueOrigins, add_values};
use crate::value::{Key, Shared, TaskId};

use super::again::{How, NOT_HELD};
use super::follow::is_of_store;
use super::item_name::{for_names, in_a_name};

/// Longest part of a condition that the reason repeats, in characters.
const MAX_SHOWN: usize = 200;

impl Draft<'_> {
    /// Decides the condition, approval and list of a task whose gate is open.
    pub(crate) fn open(&mut self, key: Key) -> Decided<()> {
        let record = self.task(key)?;
        if !record.body.progress.opened
            && needs_opening(&record.spec, &record.body.progress)
            && !self.decide_opening(key, &record)?
        {
            return Ok(());
        }
        if self.node(key)?.gate.undecided {
            self.refresh_node(key)?;
        }
        Ok(())
    }

    /// Returns whether the task is open now. Otherwise it ended, waits for a decision, or waits for items that still
    /// run.
    fn decide_opening(&mut self, key: Key, record: &TaskRecord) -> Decided<bool> {
        // A task that lost its `forEach` drops its former items as if the list were empty, and then runs its own calls.
        if record.body.progress.former_items && self.expand(key, Evaluated::default())? == Ok(false) {
            return Ok(false);
        }
        if self.starts_later(key, record)? {
            return Ok(false);
        }
        let mut decided = Vec::new();
        if let Some(when) = &record.spec.when {
            let holds = match flow::holds(self, record, &self.known_calls(key)?, when)? {
                Ok(Evaluated { value, untrusted }) => {
                    decided = untrusted;
                    value
                }
                Err(problem) => return self.fail_to_open(key, "when", problem),
            };
            add_values(&mut decided, record.field_of_model("when"));
            if !holds {
                // Other tasks may read that it was skipped, which then is the word of these authors.
                self.decide_by(key, decided)?;
                return self.skip_by_condition(key, when);
            }
        }
        // The condition comes before the approval, so that no approval is requested for a skipped task. The list comes
        // last, because it may read the answer.
        self.decide_by(key, decided.clone())?;
        if !self.ask_approval(key, None)? {
            return Ok(false);
        }
        if let Some(for_each) = &record.spec.for_each {
            let list = flow::list(self, record, &self.known_calls(key)?, for_each)?;
            let is_known = match list {
                Ok(list) => {
                    add_values(&mut decided, flow::values_of_list(record, list.untrusted.clone()));
                    self.decide_by(key, decided)?;
                    self.expand(key, list)?
                }
                Err(problem) => return self.fail_to_open(key, "forEach", problem),
            };
            match is_known.map_err(Problem::from) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(problem) => return self.fail_to_open(key, "forEach", problem),
            }
        }
        self.cover(key)?;
        self.update_task(key, |record| {
            record.body.progress.opened = true;
            record.body.progress.waiting_for = None;
        })?;
        Ok(true)
    }

    /// Records the untrusted values that decided whether the task runs.
    fn decide_by(&mut self, key: Key, values: Vec<UntrustedValue>) -> Decided<()> {
        if self.task(key)?.decided_by() == values {
            return Ok(());
        }
        self.update_task(key, |record| record.change_origins(|origins| origins.decided_by = values))
    }

    fn skip_by_condition(&mut self, key: Key, when: &str) -> Decided<bool> {
        let mut shown: String = when.chars().take(MAX_SHOWN).collect();
        if shown.len() < when.len() {
            shown.push('…');
        }
        self.skip_tree(key, Cause::Gate, Some(&format!("{NOT_HELD}: {shown}")))?;
        Ok(false)
    }

    fn fail_to_open(&mut self, key: Key, field: &str, problem: Problem) -> Decided<bool> {
        self.fail_without_call(key, problem.failed(field), Cause::Gate)?;
        Ok(false)
    }

    /// Fails a task none of whose calls failed.
    pub(super) fn fail_without_call(&mut self, key: Key, state: TaskStatus, cause: Cause) -> Decided<()> {
        let text = if let TaskStatus::Failed { error, .. } = &state { Some(error.clone()) } else { None };
        self.set_state(key, state, cause, text)
    }

    /// Discards the decisions about a task, so that they are made again when its gate opens.
    pub(crate) fn close(&mut self, key: Key) -> Decided<()> {
        let opened = match self.changes.tasks.get(&key) {
            Some(change) => change.record.body.progress.opened,
            None => self.task(key)?.body.progress.opened,
        };
        if opened {
            self.update_task(key, |record| record.body.progress.opened = false)?;
            self.update_node(key, |node| node.gate.undecided = true)?;
            self.queue(key);
        }
        Ok(())
    }

    // Items.

    /// Creates the items of a list, or updates the existing ones.
    ///
    /// `Ok(false)`: an item that would have to change still runs, or waits for the decision about an interrupted call.
    /// `Err`: the items cannot be created, with the reason.
    fn expand(&mut self, key: Key, list: Evaluated<Vec<Value>>) -> Decided<Result<bool, String>> {
        let (parent, calls) = (self.task(key)?, self.known_calls(key)?);
        let untrusted = flow::values_of_list(&parent, list.untrusted);
        let shown = for_names(&list.value, self.context.redact.as_deref());
        let template = Template { shown, ..Template::new(&parent, &calls) };
        let mut present = self.items(key)?;
        let item = |(index, value)| Item { index, value, untrusted: untrusted.clone() };
        let wanted: Vec<Item> = (0..).zip(list.value).map(item).collect();
        for (index, item) in &present {
            let wanted = usize::try_from(*index).ok().and_then(|index| wanted.get(index));
            let goes_on = self.is_worked_on(*item)? || self.ending_in(*item)?.is_some();
            // A person decides about the call that was interrupted, not about that of another element.
            if (goes_on || self.is_interrupted(*item)?) && !self.is_same_item(*item, wanted, &template)? {
                // Checked for all items before any of them changes, so that the list is updated as a whole or not at
                // all.
                return Ok(Ok(false));
            }
        }
        let mut new = Vec::new();
        for item in wanted {
            match present.remove(&item.index) {
                Some(present) => self.bring_in_line(present, item, &template)?,
                None => new.push(item),
            }
        }
        for surplus in present.into_values() {
            self.drop_item(surplus)?;
        }
        self.make_items(key, new, &template)
    }

    /// Returns the items of a task by their index in the list.
    pub(super) fn items(&self, key: Key) -> Decided<BTreeMap<u64, Key>> {
        let mut items = BTreeMap::new();
        for below in self.subtasks(key)? {
            if let Some(item) = self.task(below)?.body.progress.item.clone() {
                items.insert(item.index, below);
            }
        }
        Ok(items)
    }

    /// Returns whether the existing items match the current list, so that opening the task again would change nothing.
    pub(super) fn items_are_as_listed(&mut self, key: Key, parent: &TaskRecord) -> Decided<bool> {
        let calls = self.known_calls(key)?;
        let Some(for_each) = &parent.spec.for_each else { return Ok(false) };
        let Ok(list) = flow::list(self, parent, &calls, for_each)? else { return Ok(false) };
        let (template, present) = (Template::new(parent, &calls), self.items(key)?);
        if present.len() != list.value.len() {
            return Ok(false);
        }
        for ((index, item), value) in present.into_iter().zip(list.value) {
            if !self.is_same_item(item, Some(&Item { index, value, untrusted: Vec::new() }), &template)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the items that the current list would restart, because their element or their work changed.
    ///
    /// If the list cannot be evaluated yet, these are all items.
    pub(super) fn items_to_begin_anew(&mut self, key: Key, calls: &[CallRecord]) -> Decided<Vec<Key>> {
        let (parent, present) = (self.task(key)?, self.items(key)?);
        let Some(for_each) = &parent.spec.for_each else { return Ok(present.into_values().collect()) };
        let Ok(list) = flow::list(self, &parent, calls, for_each)? else {
            return Ok(present.into_values().collect());
        };
        let template = Template::new(&parent, calls);
        let mut wanted: BTreeMap<u64, Item> = (0..)
            .zip(list.value)
            .map(|(index, value)| (index, Item { index, value, untrusted: Vec::new() }))
            .collect();
        let mut other = Vec::new();
        for (index, item) in present {
            // An item that is no longer in the list does not run again.
            if let Some(wanted) = wanted.remove(&index)
                && !self.is_same_item(item, Some(&wanted), &template)?
            {
                other.push(item);
            }
        }
        Ok(other)
    }

    fn is_same_item(&self, key: Key, wanted: Option<&Item>, template: &Template<'_>) -> Decided<bool> {
        let Some(wanted) = wanted else { return Ok(false) };
        let record = self.task(key)?;
        let calls = template_calls(&self.known_calls(key)?);
        Ok(record.body.progress.item.as_ref().is_some_and(|item| item.is_same(wanted))
            && record.body.context == template.parent.body.context
            && work_of(&record.spec) == work_of(&template.spec(wanted))
            && specs(&calls).eq(specs(&template.calls)))
    }

    /// Updates an item. One that ran for another element or did other work restarts from the beginning.
    fn bring_in_line(&mut self, key: Key, item: Item, template: &Template<'_>) -> Decided<()> {
        let record = self.task(key)?;
        let is_back = flow::is_surplus(&record);
        if self.is_same_item(key, Some(&item), template)? {
            self.take_origins(key, item, template)?;
            return if is_back { self.start_one_again(key, How::Reopen) } else { Ok(()) };
        }
        // A command that cancelled or skipped the item meant the previous element, so the new element runs.
        let is_other = record.body.progress.item.as_ref().is_none_or(|before| !before.is_same(&item));
        match self.node(key)?.status_kind {
            StatusKind::Done | StatusKind::Failed => self.start_one_again(key, How::Reopen)?,
            StatusKind::Cancelled | StatusKind::Skipped if is_back || is_other => {
                self.start_one_again(key, How::Reopen)?;
            }
            StatusKind::Todo
            | StatusKind::BlockedDependency
            | StatusKind::BlockedWaiting
            | StatusKind::BlockedOther => {
                self.clear_all(key)?;
            }
            // It waits for a time or a signal, and no run works on it.
            StatusKind::InProgress if is_of_store(&record) => {
                self.take_from_store(key)?;
                self.clear_all(key)?;
            }
            StatusKind::InProgress | StatusKind::Cancelled | StatusKind::Skipped => {}
        }
        let (spec, parent) = (template.spec(&item), &template.parent.body);
        self.replace_calls(key, template.calls.clone())?;
        self.update_spec(key, |record| {
            record.spec = spec.into();
            record.body.context.clone_from(&parent.context);
            record.body.names.clone_from(&parent.names);
            record.body.origins.clone_from(&origins_for_item(parent));
            record.body.progress.item = Some(Box::new(item));
        })
    }

    /// Updates the origins of an item that is otherwise unchanged.
    fn take_origins(&mut self, key: Key, item: Item, template: &Template<'_>) -> Decided<()> {
        let record = self.task(key)?;
        let origins = origins_for_item(&template.parent.body);
        let item = Some(Box::new(item));
        if record.body.progress.item == item && record.body.origins == origins {
            return Ok(());
        }
        self.update_task(key, |record| {
            record.body.progress.item = item;
            record.body.origins = origins;
        })
    }

    /// Returns whether a run or an actor works on a task, which otherwise may wait for a time or a signal.
    fn is_worked_on(&self, key: Key) -> Decided<bool> {
        Ok(self.node(key)?.status_kind == StatusKind::InProgress && !is_of_store(&self.task(key)?))
    }

    /// Returns whether a task, or one below it, waits for the decision about an interrupted call.
    pub(super) fn is_interrupted(&self, key: Key) -> Decided<bool> {
        for below in [vec![key], self.subtree(key)?].concat() {
            let record = self.task(below)?;
            if matches!(record.body.state.blocked_reason(), Some(BlockedReason::Interrupted { .. })) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn drop_item(&mut self, key: Key) -> Decided<()> {
        // An item in progress is left alone: settling a gate must not fail, so it cannot refuse.
        for below in self.subtree(key)? {
            self.free(below)?;
            if self.is_worked_on(below)? {
                return Ok(());
            }
        }
        for below in [vec![key], self.subtree(key)?].concat() {
            self.take_from_store(below)?;
        }
        match self.node(key)?.status_kind {
            StatusKind::Skipped | StatusKind::Cancelled | StatusKind::InProgress => return Ok(()),
            StatusKind::Done => self.start_one_again(key, How::Reopen)?,
            StatusKind::Todo
            | StatusKind::Failed
            | StatusKind::BlockedDependency
            | StatusKind::BlockedWaiting
            | StatusKind::BlockedOther => {}
        }
        self.skip_tree(key, Cause::Skip, Some(&SURPLUS.to_owned()))
    }

    fn make_items(
        &mut self,
        parent: Key,
        items: Vec<Item>,
        template: &Template<'_>,
    ) -> Decided<Result<bool, String>> {
        let mut keys = Vec::with_capacity(items.len());
        for item in &items {
            let id = template.id(item.index);
            let plan = template.parent.plan.as_deref();
            if let Err(refusal) = self.check_free(&id, plan) {
                return crate::rules::decision::refused(refusal).map(|refusal| Err(refusal.to_string()));
            }
        }
        for item in items {
            keys.push(self.make_item(item, template)?);
        }
        self.put_items_below(parent, &keys)?;
        for key in keys {
            self.emit_created(key, Some(parent), &[])?;
        }
        Ok(Ok(true))
    }

    fn make_item(&mut self, item: Item, template: &Template<'_>) -> Decided<Key> {
        let (key, now, parent) = (self.new_key()?, self.now(), template.parent);
        let record = TaskRecord {
            id: template.id(item.index),
            spec: template.spec(&item).into(),
            body: TaskBody {
                context: parent.body.context.clone(),
                names: parent.body.names.clone(),
                origins: origins_for_item(&parent.body),
                progress: Progress { item: Some(Box::new(item)), ..Progress::default() },
                ..TaskBody::default()
            }
            .into(),
            plan: parent.plan.clone(),
            created_at: now,
            updated_at: now,
            version: 1,
        };
        let mut node = Node::new(key, record.spec.trigger(), Work::Manual);
        node.describe(&record.spec, &record.body.progress, &template.calls, false);
        self.insert_task(node, record, template.calls.clone());
        Ok(key)
    }
}

/// Common parts of all items of a task.
struct Template<'t> {
    parent: &'t TaskRecord,
    spec: TaskSpec,
    calls: Vec<CallRecord>,
    /// The elements of the list as names show them; empty where no name is made.
    shown: Vec<Value>,
}

impl<'t> Template<'t> {
    /// Trigger, condition, list, approval and links stay with the parent: they decide about the list as a whole. The approval of
    /// results is for each item: the list itself has none of its own.
    fn new(parent: &'t TaskRecord, calls: &[CallRecord]) -> Self {
        let mut spec = TaskSpec::clone(&parent.spec);
        spec.approval = spec.approval.filter(Approval::is_after);
        (spec.trigger, spec.when, spec.for_each, spec.links) = Default::default();
        (spec.milestone, spec.not_before, spec.extra) = Default::default();
        Self { parent, spec, calls: template_calls(calls), shown: Vec::new() }
    }

    fn id(&self, index: u64) -> TaskId {
        TaskId::from(format!("{}.{index}", self.parent.id))
    }

    fn spec(&self, item: &Item) -> TaskSpec {
        let shown = usize::try_from(item.index).ok().and_then(|index| self.shown.get(index));
        let name = match shown {
            Some(element) => format!("{} [{}]", self.spec.name, in_a_name(element)),
            None => self.spec.name.clone(),
        };
        TaskSpec { name, ..self.spec.clone() }
    }
}

/// Returns the origins that an item inherits from its list, which are those of the context only.
fn origins_for_item(parent: &TaskBody) -> Option<Box<ValueOrigins>> {
    let context = parent.origins.as_ref().map(|origins| origins.context.clone()).unwrap_or_default();
    (!context.is_empty()).then(|| Box::new(ValueOrigins { context, ..ValueOrigins::default() }))
}

fn template_calls(calls: &[CallRecord]) -> Vec<CallRecord> {
    calls.iter().map(|call| CallRecord { body: Shared::default(), ..call.clone() }).collect()
}

fn specs(calls: &[CallRecord]) -> impl Iterator<Item = (&crate::value::CallId, &CallSpec)> {
    calls.iter().map(|call| (&call.id, &*call.spec))
}

/// Returns the parts of a specification that define the work, without those that may change after it ran.
fn work_of(spec: &TaskSpec) -> TaskSpec {
    TaskSpec {
        name: String::new(),
        description: String::new(),
        labels: Vec::new(),
        priority: crate::task::Priority::default(),
        due_date: None,
        estimate: None,
        ..spec.clone()
    }
}
