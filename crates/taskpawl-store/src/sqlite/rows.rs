//! Conversion between rows and model types.

use rusqlite::types::{FromSqlError, Type, ValueRef};
use rusqlite::{Error, Result, Row, ToSql, types::ToSqlOutput};
use serde::Serialize;
use serde::de::DeserializeOwned;
use taskpawl_model::task::Event;
use taskpawl_model::task::{
    ActorKind, CallRecord, DependencyCounts, Gate, Node, Origin, SubtaskCounts, TaskRecord,
};
use taskpawl_model::value::Timestamp;
use taskpawl_model::value::{Key, RunId, TaskId};
use taskpawl_model::view::Undoable;

use super::session::Counters;
use crate::words::Code;

/// The statement whose rows [`node`] parses, up to its condition.
macro_rules! select_node {
    ($rest:literal) => {
        concat!(
            "SELECT key, parent, phase, work, gate_state, opens, gate_trigger, entry, priority, due, \
             dependencies_open, dependencies_done, dependencies_skipped, dependencies_failed, \
             subtasks_open, subtasks_finished, subtasks_failed, undecided FROM nodes ",
            $rest
        )
    };
}
pub(super) use select_node;

pub(super) fn node(row: &Row<'_>) -> Result<Node> {
    Ok(Node {
        key: Key(row.get(0)?),
        parent: row.get::<_, Option<u32>>(1)?.map(Key),
        status_kind: code(row, 2)?,
        work: code(row, 3)?,
        gate_state: code(row, 4)?,
        opens: code(row, 5)?,
        gate: Gate {
            trigger: code(row, 6)?,
            entry: code(row, 7)?,
            undecided: row.get(17)?,
            dependencies: DependencyCounts {
                open: row.get(10)?,
                done: row.get(11)?,
                skipped: row.get(12)?,
                failed: row.get(13)?,
            },
            subtasks: SubtaskCounts { open: row.get(14)?, finished: row.get(15)?, failed: row.get(16)? },
        },
        priority: code(row, 8)?,
        due: row.get(9)?,
    })
}

/// Parses `id, plan, created, spec, version, updated, body`.
pub(super) fn task(row: &Row<'_>) -> Result<TaskRecord> {
    Ok(TaskRecord {
        id: TaskId::new(text(row, 0)?),
        plan: optional_text(row, 1)?.map(Into::into),
        created_at: time(row, 2)?,
        spec: json(row, 3)?,
        version: number(row, 4)?,
        updated_at: time(row, 5)?,
        body: json(row, 6)?,
    })
}

/// Parses `id, origin, spec, body`.
pub(super) fn call(row: &Row<'_>) -> Result<CallRecord> {
    let origin = Origin::from_word(text(row, 1)?).ok_or_else(|| unknown(1, Type::Text))?;
    Ok(CallRecord { id: text(row, 0)?.into(), origin, spec: json(row, 2)?, body: json(row, 3)? })
}

/// Parses `revision, at, actor, run, task_id, data, ready, actor_kind`.
pub(super) fn event(row: &Row<'_>) -> Result<Event> {
    let ready = row.get_ref(6)?;
    Ok(Event {
        revision: number(row, 0)?,
        at: time(row, 1)?,
        actor: text(row, 2)?.into(),
        actor_kind: if row.get_ref(7)? == ValueRef::Null { ActorKind::Unknown } else { code(row, 7)? },
        run: optional_text(row, 3)?.map(RunId::new),
        task: optional_text(row, 4)?.map(TaskId::new),
        kind: json(row, 5)?,
        ready: if ready == ValueRef::Null { Box::default() } else { json(row, 6)? },
    })
}

/// Parses `revision, first, actor, undoes, undone_by`.
pub(super) fn undoable(row: &Row<'_>) -> Result<Undoable> {
    Ok(Undoable {
        revision: number(row, 0)?,
        first: number(row, 1)?,
        actor: row.get(2)?,
        undoes: optional_number(row, 3)?,
        undone_by: optional_number(row, 4)?,
    })
}

/// Parses all columns of `counters`.
pub(super) fn counters(row: &Row<'_>) -> Result<Counters> {
    let mut counters = Counters { revision: number(row, 1)?, next_key: row.get(2)?, ..Counters::default() };
    for (index, count) in counters.tasks.iter_mut().enumerate() {
        *count = number(row, 3 + index)?;
    }
    Ok(counters)
}

pub(super) fn text<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a str> {
    row.get_ref(column)?.as_str().map_err(|error| of_type(column, error))
}

fn optional_text<'a>(row: &'a Row<'_>, column: usize) -> Result<Option<&'a str>> {
    row.get_ref(column)?.as_str_or_null().map_err(|error| of_type(column, error))
}

pub(super) fn json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> Result<T> {
    serde_json::from_str(text(row, column)?)
        .map_err(|error| Error::FromSqlConversionFailure(column, Type::Text, Box::new(error)))
}

/// Reads an unsigned number. SQLite has signed integers only, but our numbers stay far below the limit.
pub(super) fn number(row: &Row<'_>, column: usize) -> Result<u64> {
    let value: i64 = row.get(column)?;
    u64::try_from(value).map_err(|_| Error::IntegralValueOutOfRange(column, value))
}

fn optional_number(row: &Row<'_>, column: usize) -> Result<Option<u64>> {
    if row.get_ref(column)? == ValueRef::Null { Ok(None) } else { number(row, column).map(Some) }
}

fn code<T: Code>(row: &Row<'_>, column: usize) -> Result<T> {
    T::from_code(row.get(column)?).ok_or_else(|| unknown(column, Type::Integer))
}

fn unknown(column: usize, kind: Type) -> Error {
    Error::FromSqlConversionFailure(column, kind, Box::from("the value is unknown"))
}

fn of_type(column: usize, error: FromSqlError) -> Error {
    Error::FromSqlConversionFailure(column, Type::Null, Box::new(error))
}

/// A time as nanoseconds since 1970, or as text outside that range.
pub(super) struct Time(pub(super) Timestamp);

impl ToSql for Time {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        Ok(match self.0.timestamp_nanos_opt() {
            Some(nanos) => ToSqlOutput::from(nanos),
            None => ToSqlOutput::from(taskpawl_model::value::format_time(self.0)),
        })
    }
}

pub(super) fn time(row: &Row<'_>, column: usize) -> Result<Timestamp> {
    if let ValueRef::Integer(nanos) = row.get_ref(column)? {
        return Ok(chrono::DateTime::from_timestamp_nanos(nanos));
    }
    text(row, column)?.parse().map_err(|_| unknown(column, Type::Text))
}

/// Serializes a value as JSON text.
pub(super) fn to_json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::ToSqlConversionFailure(Box::new(error)))
}
