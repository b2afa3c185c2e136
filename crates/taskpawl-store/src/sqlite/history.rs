//! Event queries.

use rusqlite::types::Value;
use serde_json::Value as Json;
use taskpawl_model::view::EventQuery;

use super::find::Statement;

/// The start of every checklist event. Must be the exact condition of the partial index.
const CHECKLISTS: &str = r#"substr(data, 1, 19) = '{"type":"checklist"'"#;

/// Returns the statement for an event query, in descending order if the latest events are wanted.
///
/// It walks all revisions, those of one task or those of checklists, and stops at the limit.
pub(super) fn statement(query: &EventQuery) -> Statement {
    let mut params = Vec::new();
    let mut conditions = Vec::new();
    let mut add = |condition: &str, value: Value| {
        params.push(value);
        conditions.push(format!("{condition} ?{}", params.len()));
    };
    add("revision >", integer(query.after));
    let text = |text: &str| Value::Text(text.to_owned());
    if let Some(until) = query.until {
        add("revision <=", integer(until));
    }
    if let Some(key) = query.task {
        add("task =", Value::Integer(i64::from(key.0)));
    }
    if let Some(id) = &query.task_id {
        add("task_id =", text(id.as_str()));
    }
    if let Some(actor) = &query.actor {
        add("actor =", text(actor));
    }
    if let Some(run) = &query.run {
        add("run =", text(run.as_str()));
    }
    let is_of_checklists = query.kind.as_deref() == Some("checklist");
    if let Some(kind) = query.kind.as_ref().filter(|_| !is_of_checklists) {
        // Events of this version start with their type. Comparing a prefix is far cheaper than parsing JSON.
        let start = format!("{{\"type\":{}", Json::from(kind.as_str()));
        add(&format!("substr(data, 1, {}) =", start.chars().count()), Value::Text(start));
    }
    if let Some(nanos) = query.since.and_then(|since| since.timestamp_nanos_opt()) {
        // Times outside the nanosecond range are stored as text. SQLite sorts text after all integers, so the
        // comparison holds for later times.
        add("at >=", Value::Integer(nanos));
    }
    if is_of_checklists {
        // SQLite uses a partial index only for a condition that repeats its definition.
        conditions.push(CHECKLISTS.to_owned());
    }
    let from = match (query.task, is_of_checklists) {
        (Some(_), _) => "events INDEXED BY events_by_task",
        (None, true) => "events INDEXED BY events_of_checklists",
        (None, false) => "events",
    };
    let order = if query.latest { "DESC" } else { "ASC" };
    let limit = if query.limit == 0 { -1 } else { i64::try_from(query.limit).unwrap_or(-1) };
    let conditions = conditions.join(" AND ");
    let sql = format!(
        "SELECT revision, at, actor, run, task_id, data, ready, actor_kind FROM {from} WHERE {conditions} \
         ORDER BY revision {order} LIMIT {limit}"
    );
    Statement { sql, params }
}

/// The group key of checklist events: the raw text between type and items, which contains the scope. It
/// distinguishes checklists as well as the scope itself does, without parsing JSON.
const SCOPE: &str = r#"CASE substr(data, 20, 10) WHEN ',"scope":"' THEN substr(data, 30, instr(data, '","items":[') - 30)
    ELSE json_extract(data, '$.scope') END"#;

/// Returns the statement for the latest event of each checklist.
pub(super) fn newest_checklists() -> String {
    format!(
        "SELECT revision, at, actor, run, task_id, data, ready, actor_kind FROM events WHERE revision IN (\
         SELECT max(revision) FROM events INDEXED BY events_of_checklists \
         WHERE revision > ?1 AND {CHECKLISTS} GROUP BY {SCOPE}) ORDER BY revision"
    )
}

fn integer(value: u64) -> Value {
    Value::Integer(i64::try_from(value).unwrap_or(i64::MAX))
}
