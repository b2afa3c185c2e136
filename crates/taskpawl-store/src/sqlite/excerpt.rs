//! Indexed columns that repeat values from the JSON text of a row, for queries over many tasks.
//!
//! The JSON is authoritative. `doctor` compares the columns with it, and its repair rewrites columns that
//! differ.

use rusqlite::params_from_iter;
use rusqlite::types::{Value, ValueRef};
use serde::de::DeserializeOwned;
use taskpawl_model::task::{CallBody, CallSpec, CallStatus, TaskBody, TaskSpec, WaitingFor};
use taskpawl_model::view::ViewResult;

use super::rows;
use super::session::Session;
use crate::StoreError;
use crate::examine::diagnostic::{Diagnostic, Diagnostics, Severity};

/// The values of a task body that have columns of their own.
#[derive(PartialEq)]
pub(super) struct OfBody<'a> {
    /// The holder of the lease of the task.
    pub(super) holder: Option<&'a str>,
    /// The duration of its last successful attempt.
    pub(super) took: Option<String>,
    /// The end of its durable wait in nanoseconds; [`NEVER`] if only a signal ends it.
    pub(super) wakes: Option<i64>,
    /// The name of the signal that it waits for; [`SEVERAL`] if parallel calls wait for several.
    pub(super) signal: Option<&'a str>,
}

/// Stands for several signals. No signal has this name.
pub(super) const SEVERAL: &str = "*";

/// The end of a wait that only a signal ends.
pub(super) const NEVER: i64 = i64::MAX;

impl<'a> OfBody<'a> {
    pub(super) fn new(body: &'a TaskBody) -> Self {
        let holder = body.state.lease_holder().map(|holder| &**holder);
        let wait = body.progress.waiting_for.as_deref();
        // A time beyond the range of nanoseconds is centuries away.
        let wakes = wait.map(|wait| wait.time.and_then(|time| time.timestamp_nanos_opt()).unwrap_or(NEVER));
        let mut signals = wait.into_iter().flat_map(WaitingFor::signals);
        let signal =
            signals.next().map(|first| if signals.all(|other| other == first) { first } else { SEVERAL });
        Self { holder, took: body.progress.took.map(|took| took.to_string()), wakes, signal }
    }
}

/// Returns the expected duration of a task, as its author stated it.
pub(super) fn estimate(spec: &TaskSpec) -> Option<String> {
    spec.estimate.map(|estimate| estimate.to_string())
}

pub(super) fn is_running(body: &CallBody) -> bool {
    body.status == CallStatus::Running
}

/// Columns of a table that repeat values from a JSON text.
struct Excerpts {
    table: &'static str,
    /// Selects the key, the text and the columns.
    select: &'static str,
    update: &'static str,
    /// Computes the columns from the text. `None` for invalid text, which another check reports.
    of_text: fn(&str) -> Option<Vec<Value>>,
}

const ALL: [Excerpts; 4] = [
    Excerpts {
        table: "bodies",
        select: "SELECT key, body, holder, took, wakes, signal FROM bodies",
        update: "UPDATE bodies SET holder = ?2, took = ?3, wakes = ?4, signal = ?5 WHERE key = ?1",
        of_text: |text| {
            parse(text).map(|body| {
                let OfBody { holder, took, wakes, signal } = OfBody::new(&body);
                let text = |text: Option<&str>| Value::from(text.map(str::to_owned));
                vec![text(holder), took.into(), wakes.into(), text(signal)]
            })
        },
    },
    Excerpts {
        table: "tasks",
        select: "SELECT key, spec, estimate FROM tasks",
        update: "UPDATE tasks SET estimate = ?2 WHERE key = ?1",
        of_text: |text| parse(text).map(|spec| vec![estimate(&spec).into()]),
    },
    Excerpts {
        table: "calls",
        select: "SELECT slot, body, is_running FROM calls",
        update: "UPDATE calls SET is_running = ?2 WHERE slot = ?1",
        of_text: |text| parse(text).map(|body| vec![is_running(&body).into()]),
    },
    Excerpts {
        table: "calls",
        select: "SELECT slot, spec, tool FROM calls",
        update: "UPDATE calls SET tool = ?2 WHERE slot = ?1",
        of_text: |text| parse(text).map(|spec: CallSpec| vec![spec.tool_name.into()]),
    },
];

fn parse<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str(text).ok()
}

/// Finds rows whose columns differ from their text.
pub(super) fn check(session: &Session) -> ViewResult<Vec<Diagnostic>> {
    let mut found = Diagnostics::new("excerpt", Severity::Repairable, "rewrite the columns from their text");
    for excerpts in &ALL {
        let count = excerpts.wrong(session)?.len();
        if count > 0 {
            let message =
                format!("{count} rows of `{}` have columns that differ from their text", excerpts.table);
            found.add(session.path.display(), message);
        }
    }
    Ok(found.finish())
}

/// Rewrites columns that differ from their text.
pub(super) fn repair(session: &Session) -> Result<(), StoreError> {
    for excerpts in &ALL {
        for (key, values) in excerpts.wrong(session).map_err(StoreError::from_view)? {
            let params = std::iter::once(Value::from(key)).chain(values);
            session.execute(excerpts.update, params_from_iter(params))?;
        }
    }
    Ok(())
}

impl Excerpts {
    /// Returns the keys of rows whose columns differ from their text, with the correct values.
    fn wrong(&self, session: &Session) -> ViewResult<Vec<(i64, Vec<Value>)>> {
        let mut wrong = Vec::new();
        session.each(self.select, [], |row| {
            let Some(expected) = rows::text(row, 1).ok().and_then(self.of_text) else { return Ok(()) };
            let is_right =
                |(index, value): (usize, &Value)| Ok(row.get_ref(2 + index)? == ValueRef::from(value));
            let rights =
                expected.iter().enumerate().map(is_right).collect::<rusqlite::Result<Vec<bool>>>()?;
            if rights.contains(&false) {
                wrong.push((row.get(0)?, expected));
            }
            Ok(())
        })?;
        Ok(wrong)
    }
}
