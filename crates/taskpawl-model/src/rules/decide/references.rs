//! Checks references in expressions against the store: a task may only read results of tasks that end before it starts.

use crate::view::ReadGraph;
use std::collections::BTreeSet;

use serde_json::Value;

use crate::advice::Advice;
use crate::advice::hint::Hint;
use crate::command::refusal::Refusal;
use crate::expr::{self, ExprError, Mention, Name};
use crate::plan::{PlanProblem, PlanTask};
use crate::plan::{Scope, Stage};
use crate::rules::DecideError;
use crate::rules::draft::{Decided, Draft};
use crate::task::record::{CallRecord, TaskRecord};
use crate::task::spec::{ForEach, NewCall};
use crate::task::trust::trusted_inputs;
use crate::value::Map;
use crate::value::secret::has_secret;
use crate::value::{Key, TaskId};

/// One expression field of a task, and the names that it reads.
struct Site {
    field: String,
    stage: Stage,
    mentions: Vec<Mention>,
}

impl Draft<'_> {
    /// Checks the expressions of a task that its author changed.
    pub(super) fn check_references(&self, key: Key) -> Decided<()> {
        let record = self.task(key)?;
        let params = match &record.plan {
            Some(plan) => self.declared(plan)?,
            None => Vec::new(),
        };
        self.check_references_with(key, &params)
    }

    /// Checks the expressions of a task whose plan declares these parameters.
    pub(super) fn check_references_with(&self, key: Key, params: &[String]) -> Decided<()> {
        let (record, calls) = (self.look_at(key)?, self.look_at_calls(key)?);
        check_trusted_inputs(&record, &calls)?;
        if !has_expressions(&record, &calls) {
            return Ok(());
        }
        let sites = sites(&record, &calls)?;
        let task = as_plan_task(&record, &calls);
        for site in &sites {
            let scope =
                Scope::new(&task, site.stage, Some(params)).with_item(record.body.progress.item.is_some());
            for mention in &site.mentions {
                let problem = match &mention.name {
                    Name::Task { task, .. } => self.reference_problem(key, &record, task, site.stage)?,
                    name @ (Name::Param(_)
                    | Name::Context(_)
                    | Name::Variable(_)
                    | Name::Item
                    | Name::Index
                    | Name::Attempt) => {
                        scope.problem(name).map(|(problem, hint)| (problem, hint.map(Hint::from)))
                    }
                };
                if let Some((problem, hint)) = problem {
                    return Err(refusal(&record, site, mention, problem, hint).into());
                }
            }
        }
        Ok(())
    }

    /// Returns the names of other tasks in the expressions of a task.
    pub(super) fn mentioned_tasks(&self, key: Key) -> Decided<BTreeSet<String>> {
        let (record, calls) = (self.look_at(key)?, self.look_at_calls(key)?);
        if !has_expressions(&record, &calls) {
            return Ok(BTreeSet::new());
        }
        let mentions = sites(&record, &calls)?.into_iter().flat_map(|site| site.mentions);
        let tasks = mentions.filter_map(|mention| match mention.name {
            Name::Task { task, .. } => Some(task),
            Name::Param(_)
            | Name::Context(_)
            | Name::Variable(_)
            | Name::Item
            | Name::Index
            | Name::Attempt => None,
        });
        Ok(tasks.collect())
    }

    /// Checks references of tasks and of everything after them, once an edge before them is gone.
    pub(super) fn check_references_behind(&self, keys: &[Key]) -> Decided<()> {
        let mut seen = BTreeSet::new();
        let mut stack = keys.to_vec();
        while let Some(key) = stack.pop() {
            if !seen.insert(key) {
                continue;
            }
            self.check_task_references(key, false)?;
            stack.extend(self.subtasks(key)?);
            stack.extend(self.dependents(key)?);
        }
        Ok(())
    }

    /// Checks only references to tasks. `changes_it` tells whether the command changes this task's expressions or an
    /// edge.
    pub(super) fn check_task_references(&self, key: Key, changes_it: bool) -> Decided<()> {
        let (record, calls) = (self.look_at(key)?, self.look_at_calls(key)?);
        // A finished task has already evaluated its expressions.
        if record.body.state.status().is_finished() || !has_expressions(&record, &calls) {
            return Ok(());
        }
        for site in &sites(&record, &calls)? {
            for mention in &site.mentions {
                let Name::Task { task, .. } = &mention.name else { continue };
                if let Some((problem, hint)) = self.reference_problem(key, &record, task, site.stage)? {
                    let needs =
                        || Hint::default().data(&record.id).text(" needs its result; change that first");
                    let hint = hint.filter(|_| changes_it).unwrap_or_else(needs);
                    return Err(refusal(&record, site, mention, problem, Some(hint)).into());
                }
            }
        }
        Ok(())
    }

    fn declared(&self, plan: &str) -> Decided<Vec<String>> {
        let header = self.view.plan(plan)?.map(|plan| plan.header).unwrap_or_default();
        let params = header.get("params").and_then(Value::as_object);
        Ok(params.map(|params| params.keys().cloned().collect()).unwrap_or_default())
    }

    /// Returns the reason why a task cannot read the result of the task named by `text`.
    fn reference_problem(
        &self,
        key: Key,
        record: &TaskRecord,
        text: &str,
        stage: Stage,
    ) -> Decided<Option<(PlanProblem, Option<Hint>)>> {
        let id = record.body.names.get(text).map_or(text, TaskId::as_str);
        let label = || record.id.to_string();
        let Some(other) = self.find_id(id)? else {
            let problem = PlanProblem::UnknownTask { reference: text.to_owned() };
            return Ok(Some((problem, Some("use the full id of the task in an expression".into()))));
        };
        if other == key {
            let hint = "use `context` for the task's own values".into();
            return Ok(Some((PlanProblem::OwnResult { task: label() }, Some(hint))));
        }
        // Subtasks end before the calls of their parent start, but after its condition, list and cache key were
        // evaluated.
        let is_early = matches!(stage, Stage::When | Stage::List | Stage::Key);
        if self.is_below(other, key)? && !is_early || self.is_before(key, other)? {
            return Ok(None);
        }
        let problem = PlanProblem::NoDependency { task: label(), other: id.to_owned() };
        let depend = Advice::AddDependency { id: record.id.clone(), on: id.into() };
        let hint = Hint::new("make it depend on ").data(id).text(" first: ").advice(depend);
        Ok(Some((problem, Some(hint))))
    }

    fn is_below(&self, key: Key, above: Key) -> Decided<bool> {
        let mut parent = self.node(key)?.parent;
        while let Some(key) = parent
            && key != above
        {
            parent = self.node(key)?.parent;
        }
        Ok(parent.is_some())
    }

    /// Returns the dependencies of a task and of all its parents.
    fn needs_above(&self, key: Key) -> Decided<Vec<Key>> {
        let mut needs = self.dependencies(key)?;
        let mut parent = self.node(key)?.parent;
        while let Some(key) = parent {
            needs.extend(self.dependencies(key)?);
            parent = self.node(key)?.parent;
        }
        Ok(needs)
    }

    /// Returns whether another task always ends before this task starts.
    fn is_before(&self, key: Key, wanted: Key) -> Decided<bool> {
        let mut stack = self.needs_above(key)?;
        // Direct dependencies are the usual case and need no walk.
        if stack.contains(&wanted) {
            return Ok(true);
        }
        let mut seen = BTreeSet::new();
        while let Some(key) = stack.pop() {
            if key == wanted {
                return Ok(true);
            }
            if seen.insert(key) {
                stack.extend(self.subtasks(key)?);
                stack.extend(self.needs_above(key)?);
            }
        }
        Ok(false)
    }
}

fn has_expressions(record: &TaskRecord, calls: &[CallRecord]) -> bool {
    let spec = &record.spec;
    let own = spec.when.is_some() || spec.for_each.is_some() || spec.repeat.is_some() || spec.cache.is_some();
    own || calls.iter().any(|call| {
        call.spec.when.is_some()
            || call
                .spec
                .args
                .values()
                .any(|value| crate::rules::flow::has_expression(value) || has_secret(value))
    })
}

/// Refuses `trustInputs` names that no expression reads. They would have no effect, although they look like a
/// safeguard.
fn check_trusted_inputs(record: &TaskRecord, calls: &[CallRecord]) -> Decided<()> {
    let names: BTreeSet<&str> =
        calls.iter().flat_map(|call| trusted_inputs(&record.spec, &call.spec)).collect();
    if names.is_empty() && record.spec.trust_inputs.is_empty() {
        return Ok(());
    }
    let sites = sites(record, calls)?;
    let read: BTreeSet<&str> = sites.iter().flat_map(|site| &site.mentions).filter_map(input_of).collect();
    match names
        .into_iter()
        .chain(record.spec.trust_inputs.iter().map(String::as_str))
        .find(|name| !read.contains(name))
    {
        Some(name) => {
            let problem = format!("no expression of the task reads a task or context value named `{name}`");
            Err(Refusal::InvalidField { field: "trustInputs".to_owned(), problem }.into())
        }
        None => Ok(()),
    }
}

fn input_of(mention: &Mention) -> Option<&str> {
    match &mention.name {
        Name::Task { task: input, .. } | Name::Context(input) => Some(input),
        Name::Param(_) | Name::Variable(_) | Name::Item | Name::Index | Name::Attempt => None,
    }
}

/// Returns whether the expressions of a task read a parameter.
pub(super) fn uses_param(record: &TaskRecord, calls: &[CallRecord], wanted: &str) -> bool {
    let is_used = |site: &Site| {
        site.mentions.iter().any(|mention| matches!(&mention.name, Name::Param(name) if name == wanted))
    };
    has_expressions(record, calls) && sites(record, calls).is_ok_and(|sites| sites.iter().any(is_used))
}

fn sites(record: &TaskRecord, calls: &[CallRecord]) -> Decided<Vec<Site>> {
    let spec = &record.spec;
    let mut sites = Vec::new();
    let mut add = |field: String, stage, mentions: Result<Vec<Mention>, ExprError>| match mentions {
        Ok(mentions) => {
            sites.push(Site { field, stage, mentions });
            Ok(())
        }
        Err(error) => Err(DecideError::from(unreadable(record, &field, error))),
    };
    if let Some(when) = &spec.when {
        add("when".to_owned(), Stage::When, expr::condition_mentions(when))?;
    }
    if let Some(ForEach { list, .. }) = &spec.for_each {
        let mentions = list.as_str().map_or_else(|| expr::mentions(list), expr::condition_mentions);
        add("forEach.in".to_owned(), Stage::List, mentions)?;
    }
    if let Some(key) = spec.cache.as_ref().and_then(|cache| cache.key.as_ref()) {
        add("cache.key".to_owned(), Stage::Key, expr::condition_mentions(key))?;
    }
    if let Some(repeat) = &spec.repeat {
        add("repeat.until".to_owned(), Stage::Until, expr::condition_mentions(&repeat.until))?;
    }
    for (number, call) in calls.iter().enumerate() {
        let field = format!("toolCalls[{number}]");
        if let Some(when) = &call.spec.when {
            add(format!("{field}.when"), Stage::CallWhen(number), expr::condition_mentions(when))?;
        }
        let args: &Map = &call.spec.args;
        if args.values().any(|value| crate::rules::flow::has_expression(value) || has_secret(value)) {
            let mentions = expr::args_mentions(&call.spec.tool_name, args);
            add(format!("{field}.args"), Stage::Args(number), mentions)?;
        }
    }
    Ok(sites)
}

/// Returns a stored task in plan form, so that both use the same scope rules.
fn as_plan_task(record: &TaskRecord, calls: &[CallRecord]) -> PlanTask {
    let calls = calls.iter().map(|call| NewCall { id: Some(call.id.clone()), spec: call.spec.clone() });
    PlanTask {
        spec: record.spec.clone(),
        context: record.body.context.clone(),
        calls: calls.collect(),
        ..PlanTask::default()
    }
}

fn place(field: &str, pointer: &str) -> String {
    match pointer {
        "" => field.to_owned(),
        pointer => format!("{field}.{pointer}"),
    }
}

fn unreadable(record: &TaskRecord, field: &str, error: ExprError) -> Refusal {
    let field = place(field, &error.pointer);
    let problem = Box::new(PlanProblem::from(error.fault));
    Refusal::Expression { id: record.id.clone(), field, problem, hint: error.hint.map(Hint::from) }
}

fn refusal(
    record: &TaskRecord,
    site: &Site,
    mention: &Mention,
    problem: PlanProblem,
    hint: Option<Hint>,
) -> Refusal {
    let field = place(&site.field, &mention.pointer);
    Refusal::Expression { id: record.id.clone(), field, problem: Box::new(problem), hint }
}
