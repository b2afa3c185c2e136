//! The MCP server by which an agent reaches the plan of its call.
//!
//! Programs that agents are written in, such as node, pass no descriptors on to what they start. So the agent runs below a relay, which
//! holds the descriptor and hands it out at a socket file. The limits are those of `planAccess`: the run decides, not the server.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use taskpawl_tools::{CallContext, Environment, PLAN_VARIABLE};

/// Longest path of a directory for a socket, in bytes: the kernel takes 107 with the names below it.
const MAX_DIRECTORY: usize = 60;

/// The way of one call to its plan.
#[derive(Debug)]
pub(crate) struct PlanServer {
    program: PathBuf,
    socket: PathBuf,
    /// Variables that tell the server which call it belongs to.
    variables: Vec<(String, String)>,
}

impl PlanServer {
    /// Returns the way of a call. `program` is `taskpawl`.
    pub(crate) fn of(cx: &CallContext, program: PathBuf) -> Self {
        let environment = cx.program_environment(std::collections::BTreeMap::new());
        let Environment::Exactly(all) = environment else {
            return Self { socket: socket(cx, None), program, variables: Vec::new() };
        };
        let text = |value: &OsStr| value.to_str().map(str::to_owned);
        // Agents start servers with few variables of their own.
        let is_ours = |name: &str| {
            name.starts_with("TASKPAWL_") && name != PLAN_VARIABLE || ["HOME", "TMPDIR"].contains(&name)
        };
        let variables = all
            .iter()
            .filter_map(|(name, value)| Some((text(name)?, text(value)?)))
            .filter(|(name, _)| is_ours(name))
            .collect();
        let temporary = all.get(OsStr::new("TMPDIR")).map(Path::new);
        Self { socket: socket(cx, temporary), program, variables }
    }

    /// Returns the command line of an agent below the relay.
    pub(crate) fn relayed(&self, argv: &[String]) -> Vec<String> {
        let own =
            [self.program.display().to_string(), "plan-relay".to_owned(), self.socket.display().to_string()];
        own.into_iter().chain(argv.iter().cloned()).collect()
    }

    /// Returns the server as the protocol names one.
    pub(crate) fn server(&self) -> Value {
        let plan = (PLAN_VARIABLE.to_owned(), self.socket.display().to_string());
        let variables = self.variables.iter().chain([&plan]);
        let env: Vec<Value> = variables.map(|(name, value)| json!({"name": name, "value": value})).collect();
        json!({"name": "taskpawl", "command": self.program, "args": ["mcp"], "env": env})
    }
}

/// Returns a path that no other start of a call has: its span has an id of its own.
fn socket(cx: &CallContext, temporary: Option<&Path>) -> PathBuf {
    let name = cx.traceparent.split('-').nth(2).unwrap_or("call");
    let fits = |path: &&Path| path.is_absolute() && path.as_os_str().len() <= MAX_DIRECTORY;
    let above = temporary.filter(fits).unwrap_or(Path::new("/tmp"));
    above.join(format!("taskpawl-plan-{name}")).join("plan")
}
