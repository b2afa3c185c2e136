//! The tool `agent`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use taskpawl_tools::{
    CallContext, Environment, Foreseen, Hints, NamedGrant, Network, Sandbox, Tool, ToolError, ToolSpec,
};

use crate::connection::Connection;
use crate::conversation::{Conversation, Wishes, text_block};
use crate::definition::{AgentDefinition, AgentHost};
use crate::plan_server::PlanServer;

/// The name of the tool.
const NAME: &str = "agent";

/// Time limit of a call. Time that people take is not part of it: a call that asks starts over.
const TIMEOUT: Duration = Duration::from_hours(2);

/// The tool that gives a prompt to a coding agent.
#[derive(Debug)]
pub struct AgentTool {
    spec: ToolSpec,
    host: Arc<dyn AgentHost>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Args {
    prompt: String,
    using: Option<String>,
    schema: Option<Value>,
    #[serde(default)]
    files: Vec<String>,
    mode: Option<String>,
    max_turns: Option<u32>,
    max_cost: Option<f64>,
    /// `fresh`, `shared`, or an object with the id of a session.
    session: Option<Value>,
}

impl AgentTool {
    /// Makes the tool with the agents of `host`.
    pub fn new(host: Arc<dyn AgentHost>) -> Self {
        let args = json!({
            "type": "object",
            "properties": {
                "prompt": {"type": "string", "minLength": 1, "description": "The work, in words."},
                "using": {"type": "string", "minLength": 1, "description": "The agent, such as `claude`; by default the only one. `taskpawl agents` lists them."},
                "schema": {"type": "object", "description": "JSON Schema of the answer, which is then in `json` of the result."},
                "files": {"type": "array", "items": {"type": "string", "minLength": 1}, "description": "Files of the project that the agent is pointed to."},
                "mode": {"type": "string", "minLength": 1, "description": "A mode of the agent, such as `plan`."},
                "session": {
                    "anyOf": [
                        {"enum": ["fresh", "shared"]},
                        {"type": "object", "properties": {"resume": {"type": "string", "minLength": 1}}, "required": ["resume"], "additionalProperties": false},
                    ],
                    "description": "The conversation: `fresh` (the default), `shared` with all calls of the plan that say so, or `{resume: TASK}` to go on with that of a task.",
                },
                "maxTurns": {"type": "integer", "minimum": 1, "maximum": 100, "description": "The most prompts of the call, with those that repair an answer; by default 3."},
                "maxCost": {"type": "number", "exclusiveMinimum": 0, "description": "The highest cost of the call, in the unit of the agent. An agent that reports no cost fails with it."},
            },
            "required": ["prompt"],
            "additionalProperties": false,
        });
        let result = json!({
            "type": "object",
            "properties": {
                "agent": {"type": "string"},
                "session": {"type": "string", "description": "The id of the conversation."},
                "turns": {"type": "integer", "description": "Number of prompts."},
                "stopReason": {"type": "string"},
                "text": {"type": "string", "description": "The answer: the messages after the last action."},
                "json": {"description": "The answer as JSON, with `schema`."},
            },
            "required": ["agent", "session", "turns", "stopReason", "text"],
            "additionalProperties": false,
        });
        let hints = Hints { destructive: true, open_world: true, ..Hints::default() };
        let spec =
            ToolSpec::new(NAME, "Gives work to a coding agent, which runs in the sandbox of the call.", args);
        Self { spec: spec.with_result(result).with_hints(hints).with_timeout(TIMEOUT), host }
    }

    fn agent(&self, using: Option<&str>) -> Result<AgentDefinition, ToolError> {
        self.host
            .agent(using)
            .map_err(|problem| ToolError::failed(problem).with_class("unknown_agent").terminal())
    }
}

#[async_trait]
impl Tool for AgentTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn reaches_plan(&self) -> bool {
        self.host.plan_program().is_some()
    }

    fn kit(&self, args: &Value) -> Option<String> {
        kit(&*self.host, args)
    }

    fn foresee(&self, args: &Value) -> Vec<Foreseen> {
        let using = args.get("using").and_then(Value::as_str);
        if using.is_some_and(|name| name.contains("${{")) {
            return Vec::new();
        }
        let problem = self.host.agent(using).err();
        let foreseen = |message| Foreseen {
            code: "unknown_agent",
            field: "using".to_owned(),
            message,
            is_certain: false,
        };
        problem.map(foreseen).into_iter().collect()
    }

    async fn call(&self, cx: CallContext, args: Value) -> Result<Value, ToolError> {
        let args: Args = serde_json::from_value(args)?;
        let agent = self.agent(args.using.as_deref())?;
        check_grants(&agent, &cx)?;
        let is_shared = args.session.as_ref().is_some_and(|session| session == "shared");
        let resume = if is_shared {
            let Some(sessions) = &cx.shared_sessions else { return Err(not_shared()) };
            sessions.get(&agent.name).cloned()
        } else {
            args.session.and_then(|session| Some(session.get("resume")?.as_str()?.to_owned()))
        };
        let wishes = Wishes {
            prompt: prompt(&cx, args.prompt, args.files).await?,
            rework: cx.rework.clone(),
            resume,
            is_shared,
            schema: args.schema,
            mode: args.mode,
            max_turns: args.max_turns,
            max_cost: args.max_cost,
        };
        let program = self.host.plan_program().filter(|_| cx.plan.is_some());
        let plan = program.map(|program| PlanServer::of(&cx, program));
        let mut connection = Connection::open(&agent, &cx, plan.as_ref()).await?;
        let mut session = String::new();
        let outcome = {
            let mut conversation =
                Conversation::new((&cx, &*self.host), &agent, (&mut connection, plan.as_ref())).await?;
            let outcome = cx.until_interrupted(conversation.run(&wishes)).await.and_then(|outcome| outcome);
            conversation.session().clone_into(&mut session);
            outcome
        };
        if outcome.is_err() && !session.is_empty() {
            connection.notify("session/cancel", &json!({"sessionId": session}));
        }
        connection.close().await;
        outcome
    }
}

/// Returns the error of a call that shares a conversation without the resource by which tasks take turns.
fn not_shared() -> ToolError {
    let message = "`session: shared` has to be written out in the call, in a plan or a task with `resources: [agent-session]`";
    ToolError::failed(message).with_class("invalid_args").terminal()
}

/// Returns the name under which a person grants what the agent of a call needs.
pub(crate) fn kit(host: &dyn AgentHost, args: &Value) -> Option<String> {
    let agent = host.agent(args.get("using").and_then(Value::as_str)).ok()?;
    Some(format!("{NAME}:{}", agent.name))
}

/// Refuses to start an agent without the access that it needs: it would fail in its own words, or hang.
pub(crate) fn check_grants(agent: &AgentDefinition, cx: &CallContext) -> Result<(), ToolError> {
    let Sandbox::On(profile) = &cx.sandbox else { return Ok(()) };
    let is_in = |path: &Path, all: &[PathBuf]| all.iter().any(|above| path.starts_with(above));
    let has = |grant: &&NamedGrant| match *grant {
        NamedGrant::Host(host) => {
            profile.network == Network::Full || profile.hosts.iter().any(|own| own.covers(host))
        }
        NamedGrant::Write(path) => is_in(path, &profile.write),
        NamedGrant::Read(path) => is_in(path, &profile.write) || is_in(path, &profile.read),
        NamedGrant::Env(name) => match &*cx.environment {
            Environment::Exactly(variables) => variables.contains_key(std::ffi::OsStr::new(name)),
            Environment::Inherit(_) => true,
        },
        NamedGrant::Off | NamedGrant::Net | NamedGrant::Port(_) | NamedGrant::Socket(_) | _ => true,
    };
    let missing: Vec<String> =
        agent.needs.iter().filter(|grant| !has(grant)).map(|grant| format!("`{grant}`")).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let name = &agent.name;
    let message = format!(
        "agent `{name}` needs {}; a person grants it once with `taskpawl allow agent:{name}`",
        missing.join(", ")
    );
    Err(ToolError::failed(message).with_class("missing_grant").terminal())
}

/// Returns the prompt with links to the files, which have to lie in the project.
async fn prompt(cx: &CallContext, prompt: String, files: Vec<String>) -> Result<Vec<Value>, ToolError> {
    let mut blocks = vec![text_block(&prompt)];
    let (root, dir) = (cx.root.clone(), cx.dir.clone());
    let links = tokio::task::spawn_blocking(move || {
        let root = root.canonicalize().unwrap_or(root);
        files.iter().map(|name| link(&root, &dir, name)).collect::<Result<Vec<_>, _>>()
    });
    blocks.extend(links.await.map_err(std::io::Error::from)??);
    Ok(blocks)
}

fn link(root: &Path, dir: &Path, name: &str) -> Result<Value, ToolError> {
    let path = dir.join(name);
    let real = path.canonicalize().map_err(|source| ToolError::Io {
        action: "read",
        path: PathBuf::from(name),
        source,
    })?;
    if !real.starts_with(root) {
        return Err(ToolError::OutsideRoot { path: PathBuf::from(name) });
    }
    Ok(json!({"type": "resource_link", "uri": format!("file://{}", real.display()), "name": name}))
}
