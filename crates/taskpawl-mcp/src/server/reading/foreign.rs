//! Tools of other programs, as models that know them call them here.

use serde_json::{Map, Value, json};

use super::words;
use crate::server::actions::Action;
use crate::server::core::Core;
use crate::server::options::ServerOptions;

/// Returns the tool of this server in a name that a host put its own name in front of (`mcp__taskpawl__plan_show`).
pub(crate) fn without_prefix(name: &str, options: &ServerOptions) -> Option<Core> {
    let (_, own) = name.rsplit_once("__")?;
    Core::named(own, options)
}

/// Returns the call of this server that does what a tool of another program would.
pub(crate) fn instead_of(name: &str, arguments: &Map<String, Value>) -> Option<Action> {
    let plain: String =
        name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let with = |tool, more: Value| {
        let mut arguments = arguments.clone();
        arguments.extend(more.as_object().cloned().unwrap_or_default());
        Action::call(tool, Value::Object(arguments))
    };
    Some(match plain.as_str() {
        "taskcomplete" | "completetask" | "taskdone" | "finishtask" => {
            with("task_update", json!({"action": "done"}))
        }
        "taskclaim" | "claimtask" | "starttask" => with("task_update", json!({"action": "claim"})),
        "taskcreate" | "createtask" | "addtask" => with("task_add", json!({})),
        "updatetask" => with("task_update", json!({})),
        "gettask" => with("task_get", json!({})),
        "tasklist" | "listtasks" | "gettasks" | "todoread" => Action::call("plan_show", json!({"limit": 20})),
        "todowrite" | "updateplan" => match tasks(arguments) {
            Some(tasks) => Action::call("plan_write", json!({"plan": {"tasks": tasks}, "merge": true})),
            None => Action::call("plan_show", json!({})),
        },
        _ => {
            let tool = words::tool(name)?;
            Action::call("task_add", json!({"name": tool, "call": {tool: arguments}}))
        }
    })
}

/// Returns the items of a to-do list as tasks, without their states: those come from what runs and is reported.
fn tasks(arguments: &Map<String, Value>) -> Option<Value> {
    let items = ["todos", "plan", "tasks"].into_iter().find_map(|name| arguments.get(name)?.as_array())?;
    let task = |item: &Value| {
        let mut item = item.clone();
        if let Value::Object(fields) = &mut item {
            fields.remove("status");
        }
        item
    };
    (!items.is_empty()).then(|| items.iter().map(task).collect())
}
