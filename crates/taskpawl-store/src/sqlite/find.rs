//! Task queries. Each statement is driven by one index, in the order of the result.

use rusqlite::types::Value;
use serde::Deserialize;
use taskpawl_model::task::{StatusKind, Work};
use taskpawl_model::value::Key;
use taskpawl_model::view::{Query, SearchText, ViewResult};

use super::rows;
use super::session::Session;
use crate::words::Code;

/// The sort key of a task: priority and due date (for queries of ready tasks only), then age.
type SortKey = (i64, i64, u32);

/// A statement that returns `priority, due, key`, and also `id, spec` for a text search, in order.
#[derive(Debug)]
pub(super) struct Statement {
    pub(super) sql: String,
    pub(super) params: Vec<Value>,
}

/// The index that a statement walks.
#[derive(Debug, Clone, Copy)]
enum Driver<'a> {
    Ready(Work),
    Parent(Key),
    Plan(&'a str),
    Assignee(&'a str),
    Label(&'a str),
    StatusKind(StatusKind),
    All,
}

impl Session {
    pub(super) fn find_keys(&self, query: &Query) -> ViewResult<Vec<Key>> {
        let wanted = if query.limit == 0 { usize::MAX } else { query.offset.saturating_add(query.limit) };
        let mut sort_keys = Vec::new();
        for statement in statements(query) {
            sort_keys.extend(self.sort_keys(statement, query.text.as_deref(), wanted)?);
        }
        // Each statement returns an ordered list. The sort detects these presorted pieces and merges them.
        sort_keys.sort_unstable();
        let page = sort_keys.into_iter().skip(query.offset).take(wanted.saturating_sub(query.offset));
        Ok(page.map(|(_, _, key)| Key(key)).collect())
    }

    fn sort_keys(&self, statement: Statement, text: Option<&str>, wanted: usize) -> ViewResult<Vec<SortKey>> {
        let Statement { sql, mut params } = statement;
        let Some(text) = text else {
            params.push(Value::Integer(i64::try_from(wanted).unwrap_or(-1)));
            return self.all(&sql, rusqlite::params_from_iter(params), sort_key);
        };
        // `LIKE` of SQLite ignores case only for ASCII, so the text is compared here.
        params.push(Value::Integer(-1));
        let search = SearchText::new(text);
        let mut sort_keys = Vec::new();
        self.until(&sql, rusqlite::params_from_iter(params), |row| {
            let title: Title = rows::json(row, 4)?;
            if search.is_in(&[rows::text(row, 3)?, &title.name, &title.description]) {
                sort_keys.push(sort_key(row)?);
            }
            Ok(sort_keys.len() < wanted)
        })?;
        Ok(sort_keys)
    }
}

/// The searchable texts of a task specification.
#[derive(Deserialize)]
struct Title {
    #[serde(default)]
    name: String,
    #[serde(default)]
    description: String,
}

fn sort_key(row: &rusqlite::Row<'_>) -> rusqlite::Result<SortKey> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
}

/// Returns the statements whose results together answer `query`, without its offset.
pub(super) fn statements(query: &Query) -> Vec<Statement> {
    drivers(query).into_iter().map(|driver| statement(driver, query)).collect()
}

fn drivers(query: &Query) -> Vec<Driver<'_>> {
    if let Some(works) = &query.ready {
        let works = if works.is_empty() { Work::ALL } else { works };
        return works.iter().copied().map(Driver::Ready).collect();
    }
    let one = query
        .parent
        .map(Driver::Parent)
        .or_else(|| query.plan.as_deref().map(Driver::Plan))
        .or_else(|| query.assignee.as_deref().map(Driver::Assignee))
        .or_else(|| query.labels.first().map(|label| Driver::Label(label)));
    match one {
        Some(driver) => vec![driver],
        None if query.status.is_empty() => vec![Driver::All],
        None => status_kinds(query).map(Driver::StatusKind).collect(),
    }
}

fn status_kinds(query: &Query) -> impl Iterator<Item = StatusKind> + '_ {
    StatusKind::ALL.iter().copied().filter(|status_kind| query.status.contains(&status_kind.status()))
}

/// Builds a statement. Conditions of partial indexes are literals: SQLite does not match a parameter with
/// such a condition.
fn statement(driver: Driver<'_>, query: &Query) -> Statement {
    let mut params = Vec::new();
    let mut wheres = Vec::new();
    let (from, order) = match driver {
        Driver::Ready(work) => {
            wheres.push(format!("n.phase = 0 AND n.gate_state = 1 AND n.work = {}", work.code()));
            (with_task("nodes n INDEXED BY nodes_ready", query), "n.priority, n.due, n.key")
        }
        Driver::Parent(parent) => {
            bind(&mut wheres, &mut params, "n.parent = ?", i64::from(parent.0));
            (with_task("nodes n INDEXED BY nodes_by_parent", query), "n.key")
        }
        Driver::Plan(plan) => {
            bind(&mut wheres, &mut params, "t.plan = ?", plan.to_owned());
            (format!("tasks t INDEXED BY tasks_by_plan {WITH_NODE}"), "t.key")
        }
        Driver::Assignee(assignee) => {
            bind(&mut wheres, &mut params, "t.assignee = ?", assignee.to_owned());
            (format!("tasks t INDEXED BY tasks_by_assignee {WITH_NODE}"), "t.key")
        }
        Driver::Label(label) => {
            bind(&mut wheres, &mut params, "l.label = ?", label.to_owned());
            let from = "labels l INDEXED BY labels_by_label CROSS JOIN nodes n ON n.key = l.task";
            (with_task(from, query), "l.task")
        }
        Driver::StatusKind(status_kind) => {
            wheres.push(format!("n.phase = {}", status_kind.code()));
            (with_task("nodes n INDEXED BY nodes_by_phase", query), "n.key")
        }
        Driver::All => (with_task("nodes n NOT INDEXED", query), "n.key"),
    };
    restrict(driver, query, &mut wheres, &mut params);
    let wheres = if wheres.is_empty() { "1".to_owned() } else { wheres.join(" AND ") };
    let sort_columns = if query.ready.is_some() { "n.priority, n.due" } else { "0, 0" };
    let texts = if query.text.is_some() { ", t.id, t.spec" } else { "" };
    let sql =
        format!("SELECT {sort_columns}, n.key{texts} FROM {from} WHERE {wheres} ORDER BY {order} LIMIT ?");
    Statement { sql, params }
}

const WITH_NODE: &str = "CROSS JOIN nodes n ON n.key = t.key";

/// Joins the tasks table if the query needs its columns.
fn with_task(from: &str, query: &Query) -> String {
    let needs_texts = query.text.is_some() || query.plan.is_some();
    if needs_texts || query.assignee.is_some() || query.free_for.is_some() {
        format!("{from} CROSS JOIN tasks t ON t.key = n.key")
    } else {
        from.to_owned()
    }
}

/// Adds the conditions that the driver does not cover.
fn restrict(driver: Driver<'_>, query: &Query, wheres: &mut Vec<String>, params: &mut Vec<Value>) {
    if !query.status.is_empty() && !matches!(driver, Driver::StatusKind(_)) {
        wheres.push(format!("n.phase IN ({})", codes(status_kinds(query))));
    }
    if !query.priority.is_empty() {
        wheres.push(format!("n.priority IN ({})", codes(query.priority.iter().copied())));
    }
    if let Some(parent) = query.parent.filter(|_| !matches!(driver, Driver::Parent(_))) {
        bind(wheres, params, "n.parent = ?", i64::from(parent.0));
    }
    if let Some(plan) = query.plan.as_ref().filter(|_| !matches!(driver, Driver::Plan(_))) {
        bind(wheres, params, "t.plan = ?", plan.clone());
    }
    if let Some(assignee) = query.assignee.as_ref().filter(|_| !matches!(driver, Driver::Assignee(_))) {
        bind(wheres, params, "t.assignee = ?", assignee.clone());
    }
    if let Some(actor) = &query.free_for {
        bind(wheres, params, "(t.assignee IS NULL OR t.assignee = ?)", actor.clone());
    }
    let by_driver = usize::from(matches!(driver, Driver::Label(_)));
    for label in query.labels.iter().skip(by_driver) {
        let exists = "EXISTS (SELECT 1 FROM labels x WHERE x.task = n.key AND x.label = ?)";
        bind(wheres, params, exists, label.clone());
    }
}

fn bind(wheres: &mut Vec<String>, params: &mut Vec<Value>, condition: &str, value: impl Into<Value>) {
    wheres.push(condition.to_owned());
    params.push(value.into());
}

fn codes<T: Code>(values: impl Iterator<Item = T>) -> String {
    values.map(|value| value.code().to_string()).collect::<Vec<_>>().join(", ")
}
