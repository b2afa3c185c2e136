//! Data flow: reads the data that the expressions of a task use, and nothing else.

use serde_json::Value;
use std::collections::BTreeMap;

use crate::expr::{
    self, Budget, CutParts, Data, Evaluated, ExprError, Provenance, Provenances, References, TaskData,
    TaskUse,
};
use crate::rules::failure::Problem;
use crate::task::AskedCall;
use crate::task::policy_hook::PolicyHook;
use crate::task::record::{CallRecord, TaskRecord};
use crate::task::spec::{CallPart, ForEach, Origin};
use crate::task::status::{CallStatus, Status, TaskStatus};
use crate::task::trust::{UntrustedValue, add_values, trusted_inputs};
use crate::value::Map;
use crate::value::{Key, TaskId};
use crate::view::{ReadGraph, ReadTasks, ViewResult};

/// The maximum number of items of a `forEach`.
pub const MAX_ITEMS: usize = 100_000;

/// The reason on skipped items whose elements are no longer in the list. [`is_surplus`] recognizes them by it.
pub(crate) const SURPLUS: &str = "its element is no longer in the list";

/// Returns the data for expressions of a task that use these names.
pub(crate) fn data(
    view: &(impl ReadTasks + ReadGraph + ?Sized),
    record: &TaskRecord,
    calls: &[CallRecord],
    used: &References,
) -> ViewResult<Data> {
    let mut data = Data { attempt: record.body.attempt, ..Data::default() };
    if !used.context.is_empty() {
        data.context = context(record, calls);
        let settled = calls.iter().filter(|call| call.body.status.is_settled());
        data.context_from = context_from(record, settled, provenance);
        data.kept_bytes += kept_bytes(calls);
    }
    if !used.params.is_empty()
        && let Some(plan) = &record.plan
        && let Some(plan) = view.plan(plan)?
    {
        data.params = plan.params;
        data.params_from = plan.param_origins;
    }
    for (text, used) in &used.tasks {
        if let Some(key) = named(view, record, text)?
            && let Some((seen, kept)) = task_data(view, key, *used)?
        {
            data.kept_bytes += kept;
            data.tasks.insert(text.clone(), seen);
        }
    }
    if let Some(item) = &record.body.progress.item {
        data.index = Some(item.index);
        data.item = used.item.then(|| item.value.clone());
        data.item_from.clone_from(&item.untrusted);
    }
    Ok(data)
}

/// Returns the task to which the expressions of another task refer by this text.
pub(crate) fn named(
    view: &(impl ReadTasks + ReadGraph + ?Sized),
    record: &TaskRecord,
    text: &str,
) -> ViewResult<Option<Key>> {
    view.key(record.body.names.get(text).map_or(text, TaskId::as_str))
}

/// Returns the used data of a task, and the bytes that its calls keep.
///
/// Only the used parts are read: a `forEach` may have many items, and most expressions only need the outcome.
fn task_data(
    view: &(impl ReadTasks + ReadGraph + ?Sized),
    key: Key,
    used: TaskUse,
) -> ViewResult<Option<(TaskData, u64)>> {
    let Some(record) = view.task(key)? else { return Ok(None) };
    let decided_from = decided_from(view, key, &record)?;
    let end_from = if used.end { end_from(view, key, &record)?.max(decided_from) } else { None };
    // Without results, their absence is the outcome of the condition; the length of a list is that of its author.
    let is_decided = record.spec.for_each.is_some() || !has_results(&record);
    let outcome_from = decided_from.filter(|_| is_decided);
    let of_call = |call: &CallRecord| provenance(call).lowered(outcome_from);
    let needs_calls = used.outcome || (used.results && record.spec.for_each.is_none());
    let calls = if needs_calls { view.calls(key)? } else { Vec::new() };
    let mut kept = kept_bytes(&calls);
    let (results, results_from) = match record.spec.for_each {
        Some(_) if used.results => {
            let items = results_of_items(view, key, &mut kept)?;
            items.map_or((None, Vec::new()), |(values, from)| (Some(values), from))
        }
        Some(_) | None => {
            let of_work = || calls.iter().filter(|call| call.spec.part() == CallPart::Work);
            (
                Some(of_work().map(|call| result_of_call(&record, call)).collect()),
                of_work().map(of_call).collect(),
            )
        }
    };
    let error = match &record.body.state {
        TaskStatus::Failed { error, .. } => Some(error.clone()),
        TaskStatus::Cancelled { reason } | TaskStatus::Skipped { reason } => reason.clone(),
        TaskStatus::Todo | TaskStatus::InProgress { .. } | TaskStatus::Blocked { .. } | TaskStatus::Done => {
            None
        }
    };
    let data = TaskData {
        context: context_of_other(&record, &calls),
        context_from: context_from(&record, calls.iter(), of_call),
        artifacts: artifacts(&record, &calls).map(|(name, _, value)| (name, value)).collect(),
        artifacts_from: artifacts(&record, &calls)
            .map(|(name, from, _)| (name, from))
            .filter(|(_, from)| !from.is_plain())
            .collect(),
        result: result(&record, &calls),
        result_from: result_from(&record, &calls).lowered(outcome_from),
        results,
        results_from,
        status: record.body.state.status(),
        error,
        end_from,
        outcome_from,
    };
    Ok(Some((data, kept)))
}

/// Returns the origin of the values from models that decided whether a task ran, or how many items it has: those that its own
/// condition and list read, and those of the tasks above.
fn decided_from(
    view: &(impl ReadTasks + ReadGraph + ?Sized),
    key: Key,
    record: &TaskRecord,
) -> ViewResult<Option<Origin>> {
    let origin = |record: &TaskRecord| record.decided_by().iter().map(|value| value.origin).max();
    let mut decided = origin(record);
    let mut above = view.node(key)?.and_then(|node| node.parent);
    while let Some(key) = above {
        decided = decided.max(view.task(key)?.as_ref().and_then(origin));
        above = view.node(key)?.and_then(|node| node.parent);
    }
    Ok(decided)
}

/// Returns the origin of the status and the error of a task, if a model reported them or took part in one of its calls.
fn end_from(
    view: &(impl ReadTasks + ReadGraph + ?Sized),
    key: Key,
    record: &TaskRecord,
) -> ViewResult<Option<Origin>> {
    let by_hand = record.origin_of_end();
    if by_hand.is_some() || !record.body.state.status().is_finished() {
        return Ok(by_hand);
    }
    Ok(view.calls(key)?.iter().filter_map(CallRecord::origin_of_result).max())
}

/// Returns the number of bytes that calls with results may keep according to their own `keep`.
fn kept_bytes(calls: &[CallRecord]) -> u64 {
    let keeps = calls.iter().filter(|call| call.body.result.is_some()).filter_map(|call| call.spec.keep);
    keeps.map(|keep| keep.0).sum()
}

/// Results, each with its provenance.
type Results = (Vec<Value>, Vec<Provenance>);

/// Returns the results of the items in the order of the list. `None` if they exceed the evaluation budget of an
/// expression.
fn results_of_items(
    view: &(impl ReadTasks + ReadGraph + ?Sized),
    parent: Key,
    kept: &mut u64,
) -> ViewResult<Option<Results>> {
    let (mut results, mut budget) = (BTreeMap::new(), Budget::default());
    for key in view.subtasks(parent)? {
        let Some(record) = view.task(key)? else { continue };
        if let Some(item) = &record.body.progress.item
            && !is_surplus(&record)
        {
            let calls = view.calls(key)?;
            let result = result(&record, &calls);
            if budget.value(&result).is_err() {
                return Ok(None);
            }
            *kept += kept_bytes(&calls);
            results.insert(item.index, (result, result_from(&record, &calls)));
        }
    }
    Ok(Some(results.into_values().unzip()))
}

/// Returns whether a task was an item of a list that no longer contains it.
pub(crate) fn is_surplus(record: &TaskRecord) -> bool {
    matches!(&record.body.state, TaskStatus::Skipped { reason: Some(reason) } if reason == SURPLUS)
}

/// Only a successful task has results that others can rely on. For all others, expressions read `status`.
fn has_results(record: &TaskRecord) -> bool {
    record.body.state.status() == Status::Done
}

fn result(record: &TaskRecord, calls: &[CallRecord]) -> Value {
    let own = record.body.result.clone().filter(|_| has_results(record));
    own.unwrap_or_else(|| {
        CallRecord::last_of_work(calls).map_or(Value::Null, |call| result_of_call(record, call))
    })
}

/// Returns the provenance of the value that [`result`] returns.
fn result_from(record: &TaskRecord, calls: &[CallRecord]) -> Provenance {
    if record.body.result.is_some() && has_results(record) {
        return Provenance { cut: None, origin: record.origin_of_end() };
    }
    CallRecord::last_of_work(calls).map(provenance).unwrap_or_default()
}

/// Returns the provenance of a call's result.
fn provenance(call: &CallRecord) -> Provenance {
    let cut = call.body.cut.as_deref();
    let cut = cut.and_then(|pointers| CutParts::from_pointers(pointers));
    Provenance { cut, origin: call.origin_of_result() }
}

/// Returns the provenance of context values that are cut or untrusted. Results of calls hide older values of the same
/// name.
fn context_from<'c>(
    record: &TaskRecord,
    calls: impl Iterator<Item = &'c CallRecord>,
    of_call: impl Fn(&CallRecord) -> Provenance,
) -> Provenances {
    let origins = record.body.origins.iter().flat_map(|origins| &origins.context);
    let by_hand = |origin: &Origin| Provenance { cut: None, origin: Some(*origin) };
    let mut all: Provenances = origins.map(|(name, origin)| (name.clone(), by_hand(origin))).collect();
    all.extend(calls.map(|call| (name_of(call), of_call(call))));
    all.retain(|_, provenance| !provenance.is_plain());
    all
}

fn result_of_call(record: &TaskRecord, call: &CallRecord) -> Value {
    if has_results(record) { settled_result(call) } else { Value::Null }
}

fn settled_result(call: &CallRecord) -> Value {
    let result = call.body.result.clone();
    result.filter(|_| call.body.status == CallStatus::Succeeded).unwrap_or_default()
}

fn name_of(call: &CallRecord) -> String {
    call.spec.save_as.clone().unwrap_or_else(|| call.id.to_string())
}

/// Returns the context as the task itself sees it. Calls that have not run yet have no entry.
fn context(record: &TaskRecord, calls: &[CallRecord]) -> Map {
    let mut context = record.body.context.clone();
    let settled = calls.iter().filter(|call| call.body.status.is_settled());
    context.extend(settled.map(|call| (name_of(call), settled_result(call))));
    context
}

fn context_of_other(record: &TaskRecord, calls: &[CallRecord]) -> Map {
    let mut context = record.body.context.clone();
    context.extend(calls.iter().map(|call| (name_of(call), result_of_call(record, call))));
    context
}

/// Returns the files that the calls of a successful task left, by name. Those of later calls hide earlier ones.
fn artifacts<'c>(
    record: &'c TaskRecord,
    calls: &'c [CallRecord],
) -> impl Iterator<Item = (String, Provenance, Value)> + 'c {
    let calls = calls.iter().filter(|_| has_results(record));
    calls.flat_map(|call| {
        let from = Provenance { cut: None, origin: call.origin_of_result() };
        let files = call.body.artifacts.iter().flat_map(|files| files.iter());
        files.map(move |file| (file.name().to_owned(), from.clone(), file.value()))
    })
}

/// Returns whether a value contains expressions. Most values do not, and then no other task is read.
pub(crate) fn has_expression(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("${{"),
        Value::Array(items) => items.iter().any(has_expression),
        Value::Object(map) => map.values().any(has_expression),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns the data for expressions of a task with these references, or the problem with the expressions.
fn data_of(
    view: &(impl ReadTasks + ReadGraph + ?Sized),
    record: &TaskRecord,
    calls: &[CallRecord],
    used: Result<References, ExprError>,
) -> ViewResult<Result<Data, Problem>> {
    Ok(match used {
        Ok(used) => Ok(data(view, record, calls, &used)?),
        Err(error) => Err(error.into()),
    })
}

/// Returns whether the condition of a task holds now, or the problem that prevents an answer.
pub(crate) fn holds(
    view: &(impl ReadTasks + ReadGraph + ?Sized),
    record: &TaskRecord,
    calls: &[CallRecord],
    condition: &str,
) -> ViewResult<Result<Evaluated<bool>, Problem>> {
    let data = data_of(view, record, calls, expr::condition_references(condition))?;
    Ok(data.and_then(|data| expr::evaluate_condition(condition, &data).map_err(Problem::from)))
}

/// Returns the value of an expression of a task, or the problem that prevents one.
pub(crate) fn value(
    view: &(impl ReadTasks + ReadGraph + ?Sized),
    record: &TaskRecord,
    calls: &[CallRecord],
    expression: &str,
) -> ViewResult<Result<Evaluated<Value>, Problem>> {
    let data = data_of(view, record, calls, expr::condition_references(expression))?;
    Ok(data.and_then(|data| expr::evaluate_expression(expression, &data).map_err(Problem::from)))
}

/// Returns the elements of the list of a `forEach`, or the problem that prevents it.
pub(crate) fn list(
    view: &(impl ReadTasks + ReadGraph + ?Sized),
    record: &TaskRecord,
    calls: &[CallRecord],
    for_each: &ForEach,
) -> ViewResult<Result<Evaluated<Vec<Value>>, Problem>> {
    let list = match &for_each.list {
        Value::String(text) => value(view, record, calls, text)?,
        list @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            let data = data_of(view, record, calls, expr::references(list))?;
            data.and_then(|data| expr::evaluate(list, &data).map_err(Problem::from))
        }
    };
    Ok(list.and_then(|list| {
        let Evaluated { value, untrusted } = list;
        Ok(Evaluated { value: elements(value)?, untrusted })
    }))
}

fn elements(list: Value) -> Result<Vec<Value>, String> {
    let found = match list {
        Value::Array(items) if items.len() > MAX_ITEMS => {
            return Err(format!("the list has {} elements; at most {MAX_ITEMS} are allowed", items.len()));
        }
        Value::Array(items) if items.iter().any(crate::task::is_too_deep) => {
            return Err(format!("an element is nested deeper than {}", crate::task::MAX_DEPTH));
        }
        Value::Array(items) => return Ok(items),
        Value::Null => "none: the source of the list has no result; `| default([])` means no items",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text; `| fromjson` reads a list from it",
        Value::Object(_) => "an object",
    };
    Err(format!("expected a list, found {found}"))
}

/// Returns the arguments with which a call of a task would start now, or the problem that prevents it.
pub(crate) fn args(
    view: &(impl ReadTasks + ReadGraph + ?Sized),
    record: &TaskRecord,
    calls: &[CallRecord],
    call: &CallRecord,
) -> ViewResult<Result<Evaluated<Map>, Problem>> {
    let (tool, args) = (&call.spec.tool_name, &call.spec.args);
    if !args.values().any(has_expression) {
        return Ok(Ok(Evaluated { value: args.clone(), untrusted: Vec::new() }));
    }
    let data = data_of(view, record, calls, expr::args_references(tool, args))?;
    Ok(data.and_then(|data| {
        let expr::Args { args, raw: _, untrusted } = expr::evaluate_args(tool, args, &data)?;
        Ok(Evaluated { value: flat_enough(args)?, untrusted })
    }))
}

/// Refuses arguments that are nested too deeply for a store to read back.
fn flat_enough(args: Map) -> Result<Map, String> {
    if args.values().any(crate::task::is_too_deep) {
        return Err(format!("the arguments are nested deeper than {}", crate::task::MAX_DEPTH));
    }
    Ok(args)
}

/// Returns whether a call refers to an unfinished task, whose data is not final yet.
fn refers_to_open(
    view: &(impl ReadTasks + ReadGraph + ?Sized),
    record: &TaskRecord,
    call: &CallRecord,
) -> ViewResult<bool> {
    let Ok(used) = expr::args_references(&call.spec.tool_name, &call.spec.args) else { return Ok(false) };
    for text in used.tasks.keys() {
        if let Some(key) = named(view, record, text)?
            && let Some(other) = view.task(key)?
            && !other.body.state.status().is_finished()
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the problem with the arguments of a call that do not use this context value.
pub(crate) fn problem_without(
    view: &(impl ReadTasks + ReadGraph + ?Sized),
    record: &TaskRecord,
    calls: &[CallRecord],
    call: &CallRecord,
    name: &str,
) -> ViewResult<Option<Problem>> {
    let tool = &call.spec.tool_name;
    let needs_it = |arg: &String, value: &Value| {
        let alone = Map::from_iter([(arg.clone(), value.clone())]);
        expr::args_references(tool, &alone).is_ok_and(|used| used.context.contains(name))
    };
    let mut without = call.clone();
    without.spec.args.retain(|arg, value| !needs_it(arg, value));
    Ok(args(view, record, calls, &without)?.err())
}

/// The arguments of a call as far as they are known.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct KnownArgs {
    /// All arguments; unknown ones keep the text of the author.
    pub(crate) args: Map,
    /// The names of the unknown arguments.
    pub(crate) unknown: Vec<String>,
    /// Values from models that the condition of the call and its known arguments read.
    pub(crate) untrusted: Vec<UntrustedValue>,
}

impl AskedCall {
    pub(crate) fn known(self) -> KnownArgs {
        let Self { args, unknown, untrusted, .. } = self;
        KnownArgs { args, unknown, untrusted }
    }
}

/// Returns the arguments of a call as far as they are known now. They are evaluated with attempt 0, so that an approval
/// stays valid for the next attempt.
pub(crate) fn known_args(
    view: &(impl ReadTasks + ReadGraph + ?Sized),
    record: &TaskRecord,
    calls: &[CallRecord],
    call: &CallRecord,
) -> ViewResult<KnownArgs> {
    let mut timeless = record.clone();
    timeless.body.attempt = 0;
    let mut known = KnownArgs::default();
    if let Some(when) = &call.spec.when
        && let Ok(holds) = holds(view, &timeless, calls, when)?
    {
        known.untrusted = holds.untrusted;
    }
    for (name, value) in &call.spec.args {
        let mut alone = call.clone();
        alone.spec.args = Map::from_iter([(name.clone(), value.clone())]);
        if !refers_to_open(view, record, &alone)?
            && let Ok(args) = args(view, &timeless, calls, &alone)?
        {
            known.args.extend(args.value);
            add_values(&mut known.untrusted, args.untrusted);
        } else {
            known.unknown.push(name.clone());
            known.args.insert(name.clone(), value.clone());
        }
    }
    Ok(known)
}

/// Returns the values from models that influence a call. They are its own inputs, and the values that conditions and
/// lists of its task and the parents read, except those that a person has confirmed if the policy has confirmations.
pub(crate) fn deciding_values(
    view: &(impl ReadTasks + ReadGraph + ?Sized),
    policy_hook: Option<&dyn PolicyHook>,
    key: Key,
    record: &TaskRecord,
    call: &CallRecord,
    inserted: Vec<UntrustedValue>,
) -> ViewResult<Vec<UntrustedValue>> {
    let mut values = inserted;
    // A call that a model added is untrusted already; its inputs cannot make it less trusted.
    if call.origin.is_of_model() {
        return Ok(values);
    }
    let mut add = |record: &TaskRecord| {
        add_values(&mut values, record.decided_by().iter().cloned());
    };
    add(record);
    let mut above = view.node(key)?.and_then(|node| node.parent);
    while let Some(key) = above {
        if let Some(record) = view.task(key)? {
            add(&record);
        }
        above = view.node(key)?.and_then(|node| node.parent);
    }
    let names = trusted_inputs(&record.spec, &call.spec);
    let may_trust = policy_hook.is_none_or(PolicyHook::trusts_inputs);
    if may_trust && !names.is_empty() && is_confirmed(view, key, call)? {
        values.retain(|value| !names.contains(value.input.as_str()));
    }
    Ok(values)
}

/// Returns the task at which a person confirms the inputs of a call. For items it is the task with the list.
pub(crate) fn confirming(view: &(impl ReadTasks + ReadGraph + ?Sized), key: Key) -> ViewResult<Key> {
    let is_item = view.task(key)?.is_some_and(|record| record.body.progress.item.is_some());
    Ok(if is_item { view.node(key)?.and_then(|node| node.parent).unwrap_or(key) } else { key })
}

fn is_confirmed(
    view: &(impl ReadTasks + ReadGraph + ?Sized),
    key: Key,
    call: &CallRecord,
) -> ViewResult<bool> {
    let record = view.task(confirming(view, key)?)?;
    Ok(record.is_some_and(|record| record.is_confirmed(call)))
}

/// Returns the values from models that influence the items of a list.
pub(crate) fn values_of_list(record: &TaskRecord, read: Vec<UntrustedValue>) -> Vec<UntrustedValue> {
    let mut values = read;
    add_values(&mut values, record.field_of_model("forEach"));
    values
}
