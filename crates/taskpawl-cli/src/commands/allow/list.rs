//! The list of everything that a person has remembered for a project.

use std::process::ExitCode;

use serde::Serialize;
use serde_json::{Value, json};
use taskpawl::model::value::{TaskId, Timestamp, format_time};
use taskpawl::tools::NamedGrant;

use crate::app::App;
use crate::error::CliError;
use crate::grants::{Entry, Grants, plan_text};
use crate::kits::{GrantedAgent, GrantedKit};
use crate::remembered::Approval;
use crate::text::{Cell, Table, clean};

/// The fields that grants, kits and approvals share in `--json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Permission {
    /// True if it holds for calls that models add, too.
    agents: bool,
    since: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used: Option<String>,
}

impl Permission {
    fn new(agents: bool, since: Timestamp, last_used: Option<Timestamp>) -> Self {
        Self { agents, since: format_time(since), last_used: last_used.map(format_time) }
    }
}

/// A remembered grant in `--json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedGrant<'a> {
    grant: &'a NamedGrant,
    /// Absent for all plans.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<&'a str>,
    #[serde(flatten)]
    permission: Permission,
}

/// A kit in `--json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedKit<'a> {
    kit: String,
    tasks: Vec<&'a TaskId>,
    #[serde(flatten)]
    permission: Permission,
}

/// A remembered approval in `--json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedApproval<'a> {
    /// The hash of the tool, the arguments and the sandbox request.
    approval: &'a str,
    tool: &'a str,
    call: &'a str,
    /// Absent for all plans.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<&'a str>,
    #[serde(flatten)]
    permission: Permission,
}

/// Lists the grants, kits, agents and approvals of the project.
pub(super) fn run(app: &App) -> Result<ExitCode, CliError> {
    let now = app.source()?.now();
    let grants = Grants::of_project(app)?;
    let mut kits = Grants::kits_of_project(app)?;
    kits.retain(|kit| !kit.is_expired(now));
    let agents = Grants::agents_of_project(app)?;
    let approvals = Grants::approvals_of_project(app)?;
    let out = app.out();
    if out.is_json {
        let all: Vec<Value> = grants
            .iter()
            .map(grant_json)
            .chain(kits.iter().map(kit_json))
            .chain(agents.iter().map(agent_json))
            .chain(approvals.iter().map(approval_json))
            .collect();
        return out.data(&all);
    }
    let mut table = Table::new(2);
    let rows = grants.iter().map(grant_row).chain(kits.iter().map(kit_row));
    let rows = rows.chain(agents.iter().map(agent_row)).chain(approvals.iter().map(approval_row));
    let mut is_empty = true;
    for row in rows {
        is_empty = false;
        table.row(row.iter().map(Cell::new).collect());
    }
    out.print(table.render(out.paint, out.width))?;
    if is_empty {
        out.remark("nothing is remembered for this project");
    }
    Ok(ExitCode::SUCCESS)
}

fn grant_json(entry: &Entry) -> Value {
    json!(ListedGrant {
        grant: &entry.grant,
        plan: entry.plan.as_deref(),
        permission: Permission::new(entry.agents, entry.at, entry.last_used),
    })
}

fn kit_json(kit: &GrantedKit) -> Value {
    json!(ListedKit {
        kit: kit.kit.to_string(),
        tasks: kit.tasks.iter().map(|task| &task.id).collect(),
        permission: Permission::new(kit.agents, kit.at, kit.last_used),
    })
}

fn agent_json(entry: &GrantedAgent) -> Value {
    json!({
        "kit": entry.kit(),
        "command": entry.command,
        "grants": entry.grants,
        "agents": entry.agents,
        "since": format_time(entry.at),
    })
}

fn approval_json(approval: &Approval) -> Value {
    json!(ListedApproval {
        approval: &approval.work,
        tool: &approval.tool,
        call: &approval.call,
        plan: approval.plan.as_deref(),
        permission: Permission::new(approval.agents, approval.at, approval.last_used),
    })
}

fn grant_row(entry: &Entry) -> [String; 3] {
    let plans = plans(entry.plan.as_deref(), entry.agents);
    [entry.grant.to_string(), plans, used(entry.last_used)]
}

fn kit_row(entry: &GrantedKit) -> [String; 3] {
    let tasks: Vec<String> =
        entry.tasks.iter().map(|task| format!("`{}`", clean(task.id.as_str()))).collect();
    let calls = format!("for {}{}", tasks.join(", "), also_of_models(entry.agents));
    [format!("kit:{}", entry.kit), calls, used(entry.last_used)]
}

fn agent_row(entry: &GrantedAgent) -> [String; 3] {
    let calls = format!("for its calls in all plans{}", also_of_models(entry.agents));
    [entry.kit(), calls, format!("since {}", format_time(entry.at))]
}

fn approval_row(entry: &Approval) -> [String; 3] {
    let name = format!("approval {}: {} `{}`", &entry.work[..12], clean(&entry.tool), clean(&entry.call));
    [name, plans(entry.plan.as_deref(), entry.agents), used(entry.last_used)]
}

fn plans(plan: Option<&str>, agents: bool) -> String {
    format!("for {}{}", plan_text(plan), if agents { ", also those that models add" } else { "" })
}

fn also_of_models(agents: bool) -> &'static str {
    if agents { ", also calls that models add" } else { "" }
}

fn used(last: Option<Timestamp>) -> String {
    last.map_or_else(|| "never used".to_owned(), |at| format!("last used {}", format_time(at)))
}
