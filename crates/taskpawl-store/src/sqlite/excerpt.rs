//! What runs ask for of many tasks: it stands in columns of its own, beside the text that says it.
//!
//! The text is what counts. A column that says something else is found and mended by what it says.

use rusqlite::types::Value;
use rusqlite::{params_from_iter, types::ValueRef};
use serde::de::DeserializeOwned;
use taskpawl_model::{CallBody, CallSpec, CallStatus, TaskBody, TaskSpec, ViewResult};

use super::rows;
use super::session::Session;
use crate::StoreError;
use crate::examine::{Finding, Findings, Severity};

/// What of a body stands beside it.
#[derive(PartialEq)]
pub(super) struct OfBody<'a> {
    /// Who holds the task by a lease.
    pub(super) holder: Option<&'a str>,
    /// How long it ran when it last ended well.
    pub(super) took: Option<String>,
}

impl<'a> OfBody<'a> {
    pub(super) fn new(body: &'a TaskBody) -> Self {
        let holder = body.state.lease_holder().map(|holder| &**holder);
        Self { holder, took: body.progress.took.map(|took| took.to_string()) }
    }
}

/// Returns how long the author of a task expects it to take.
pub(super) fn estimate(spec: &TaskSpec) -> Option<String> {
    spec.estimate.map(|estimate| estimate.to_string())
}

pub(super) fn is_running(body: &CallBody) -> bool {
    body.status == CallStatus::Running
}

/// The columns of a table that stand beside a text, and what they have to be.
struct Excerpts {
    table: &'static str,
    /// Key, text, columns.
    select: &'static str,
    update: &'static str,
    /// `None`: the text cannot be understood, which is found elsewhere.
    of_text: fn(&str) -> Option<Vec<Value>>,
}

const ALL: [Excerpts; 4] = [
    Excerpts {
        table: "bodies",
        select: "SELECT key, body, holder, took FROM bodies",
        update: "UPDATE bodies SET holder = ?2, took = ?3 WHERE key = ?1",
        of_text: |text| {
            parse(text).map(|body| {
                let OfBody { holder, took } = OfBody::new(&body);
                vec![holder.map(str::to_owned).into(), took.into()]
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

/// Returns where a column says something else than the text beside it.
pub(super) fn check(session: &Session) -> ViewResult<Vec<Finding>> {
    let mut found = Findings::new("excerpt", Severity::Mendable, "write what the text beside it says");
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

/// Writes what the texts say into the columns beside them.
pub(super) fn mend(session: &Session) -> Result<(), StoreError> {
    for excerpts in &ALL {
        for (key, values) in excerpts.wrong(session).map_err(StoreError::from_view)? {
            let params = std::iter::once(Value::from(key)).chain(values);
            session.execute(excerpts.update, params_from_iter(params))?;
        }
    }
    Ok(())
}

impl Excerpts {
    /// Returns the rows whose columns are not what they have to be, and that.
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
