//! The access that the last run was refused, with the tasks that asked for it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use serde::Serialize;
use serde_json::Value;
use taskpawl::model::task::{CallRecord, Grant};
use taskpawl::model::value::{TaskId, Timestamp};
use taskpawl::tools::NamedGrant;
use taskpawl::{HistoryFilter, Manager, RunFilter};

use crate::error::CliError;

/// Access that a run was refused, and that a person can grant.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Asked {
    pub(super) grant: NamedGrant,
    /// The tasks that asked for it.
    pub(super) tasks: BTreeSet<TaskId>,
    /// The programs of the calls that asked for it.
    pub(super) programs: BTreeSet<String>,
    /// The number of calls that asked for it.
    pub(super) calls: usize,
    /// The plans of the tasks; "" for tasks without a plan.
    pub(super) plans: BTreeSet<String>,
    /// The place in the project that names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) place: Option<String>,
}

/// A literal address that programs tried. No grant opens it, because hosts are granted by name.
#[derive(Debug, Clone, Serialize)]
pub(super) struct TriedAddress {
    /// The address, with a port if it is known.
    pub(super) address: String,
    /// The tasks that tried it.
    pub(super) tasks: BTreeSet<TaskId>,
    /// The number of calls that tried it.
    pub(super) calls: usize,
}

/// The last run, with all that it was refused.
#[derive(Debug)]
pub(super) struct LastRun {
    pub(super) id: String,
    pub(super) started_at: Timestamp,
    /// The plans of its tasks; "" for tasks without a plan.
    pub(super) plans: BTreeSet<String>,
    pub(super) asked: Vec<Asked>,
    pub(super) addresses: Vec<TriedAddress>,
}

/// Reads what the last run was refused; `None` without a run.
pub(super) fn of_last_run(manager: &Manager) -> Result<Option<LastRun>, CliError> {
    let Some(run) = manager.runs(&RunFilter { limit: 1 })?.into_iter().next() else { return Ok(None) };
    let filter = HistoryFilter { run: Some(run.id.to_string()), ..HistoryFilter::default() };
    let events = manager.find_history(&filter)?;
    let tasks: BTreeSet<TaskId> = events.into_iter().filter_map(|entry| entry.event.task).collect();
    let (mut asked, mut addresses, mut plans) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
    manager.read(|view| {
        for id in &tasks {
            let Some(key) = view.key(id.as_str())? else { continue };
            let plan = view.task(key)?.and_then(|task| task.plan.clone()).unwrap_or_default().to_string();
            for call in view.calls(key)? {
                take(&mut asked, id, &plan, &call);
                take_addresses(&mut addresses, id, &call);
            }
            plans.insert(plan);
        }
        Ok(())
    })?;
    Ok(Some(LastRun {
        id: run.id.to_string(),
        started_at: run.started_at,
        plans,
        asked: asked.into_values().collect(),
        addresses: addresses.into_values().collect(),
    }))
}

fn take(asked: &mut BTreeMap<NamedGrant, Asked>, task: &TaskId, plan: &str, call: &CallRecord) {
    for grant in refused(call) {
        let entry = asked.entry(grant.clone()).or_insert_with(|| Asked {
            grant,
            tasks: BTreeSet::new(),
            programs: BTreeSet::new(),
            calls: 0,
            plans: BTreeSet::new(),
            place: None,
        });
        entry.tasks.insert(task.clone());
        entry.programs.insert(program(call));
        entry.calls += 1;
        entry.plans.insert(plan.to_owned());
    }
}

fn take_addresses(addresses: &mut BTreeMap<String, TriedAddress>, task: &TaskId, call: &CallRecord) {
    let text = |refused: &Value| {
        let address: IpAddr = refused.get("address")?.as_str()?.parse().ok()?;
        let port = refused.get("port").and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok());
        let is_tried = refused.get("kind")? == "address" && refused.get("host").is_none();
        is_tried
            .then(|| port.map_or(address.to_string(), |port| SocketAddr::from((address, port)).to_string()))
    };
    for address in recorded(call).iter().filter_map(text).collect::<BTreeSet<_>>() {
        let entry = addresses.entry(address.clone()).or_insert_with(|| TriedAddress {
            address,
            tasks: BTreeSet::new(),
            calls: 0,
        });
        entry.tasks.insert(task.clone());
        entry.calls += 1;
    }
}

/// Returns the refused access in the result of a call.
fn recorded(call: &CallRecord) -> &[Value] {
    let recorded = call.body.result.as_ref().and_then(|result| result.pointer("/sandbox/refused"));
    recorded.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the grants that would give a call the access that it was refused.
fn refused(call: &CallRecord) -> BTreeSet<NamedGrant> {
    let recorded = recorded(call).iter().filter_map(grant_of);
    let named =
        call.body.error.as_ref().and_then(|error| error.grant.as_ref()).and_then(|grant| match grant {
            Grant::Host(host) => Some(format!("host:{host}")),
            Grant::Read(path) => Some(format!("read:{path}")),
            Grant::Write(path) => Some(format!("write:{path}")),
            Grant::Port(port) => Some(format!("port:{port}")),
            // The whole network is never remembered.
            Grant::Network | _ => None,
        });
    let mut found: BTreeSet<NamedGrant> = recorded.collect();
    let named = named.and_then(|text| text.parse().ok());
    // A socket is granted as such, and not as a file.
    let is_socket = |grant: &NamedGrant| matches!(grant, NamedGrant::Read(path) | NamedGrant::Write(path) if found.contains(&NamedGrant::Socket(path.clone())));
    if let Some(named) = named.filter(|named| !is_socket(named)) {
        found.insert(named);
    }
    found
}

fn grant_of(refused: &Value) -> Option<NamedGrant> {
    let text = match refused.get("kind")?.as_str()? {
        "host" => format!("host:{}", refused.get("name")?.as_str()?),
        "port" => format!("port:{}", refused.get("port")?.as_u64()?),
        "socket" => format!("socket:{}", refused.get("path")?.as_str()?),
        "variable" => format!("env:{}", refused.get("name")?.as_str()?),
        _ => return None,
    };
    text.parse().ok()
}

/// Returns the program that a call runs, as far as its arguments tell.
fn program(call: &CallRecord) -> String {
    let args = call.body.args.as_ref().unwrap_or(&call.spec.args);
    let first = args.get("argv").and_then(|argv| argv.get(0)).and_then(Value::as_str);
    let of_line =
        || args.get("command").and_then(Value::as_str).and_then(|line| line.split_whitespace().next());
    first.or_else(of_line).unwrap_or(&call.spec.tool_name).to_owned()
}
