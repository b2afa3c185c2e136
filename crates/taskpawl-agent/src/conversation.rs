//! One conversation with an agent: its session, its turns, and the answers to its requests.

use serde_json::{Value, json};
use taskpawl_tools::{Ask, CallContext, Decision, Sandbox, SentBack, ToolError};

use crate::action::{Action, Actions};
use crate::answer;
use crate::connection::{Connection, RequestError};
use crate::definition::{AgentDefinition, AgentHost};
use crate::files::FileRequest;
use crate::plan_server::PlanServer;
use crate::record::Record;
use crate::refused::Refused;
use crate::transcript::Transcript;
use crate::usage::{Usage, tokens_of_turn};
use crate::words::{plain, text};

/// The version of the protocol.
pub(crate) const PROTOCOL: u64 = 1;

/// Largest answer, in bytes.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// Rounds in which an agent may repair an answer that does not fit.
const MAX_REPAIRS: u32 = 2;

/// The wishes of a call.
#[derive(Debug)]
pub(crate) struct Wishes {
    /// The prompt, as blocks of content.
    pub(crate) prompt: Vec<Value>,
    /// The text of the verification that the work has failed.
    pub(crate) rework: Option<SentBack>,
    /// The session of another call to go on with.
    pub(crate) resume: Option<String>,
    /// True if calls that follow go on with the session, so that it is not copied.
    pub(crate) is_shared: bool,
    /// The schema of the answer.
    pub(crate) schema: Option<Value>,
    /// The mode of the session.
    pub(crate) mode: Option<String>,
    /// Most prompts that the call sends.
    pub(crate) max_turns: Option<u32>,
    /// Highest cost of the call.
    pub(crate) max_cost: Option<f64>,
}

/// A conversation.
#[derive(Debug)]
pub(crate) struct Conversation<'a> {
    cx: &'a CallContext,
    host: &'a dyn AgentHost,
    agent: &'a AgentDefinition,
    connection: &'a mut Connection,
    /// The MCP servers of the session.
    servers: Value,
    log: Transcript,
    record: Record,
    usage: Usage,
    max_cost: Option<f64>,
    /// The messages of the turn.
    answer: String,
    /// The position in `answer` after the last action.
    after_actions: usize,
    is_cut: bool,
    /// The actions of the turn, which permission requests refer to.
    actions: Actions,
    /// True while the agent repeats the messages of a loaded session.
    is_replay: bool,
}

impl<'a> Conversation<'a> {
    pub(crate) async fn new(
        (cx, host): (&'a CallContext, &'a dyn AgentHost),
        agent: &'a AgentDefinition,
        (connection, plan): (&'a mut Connection, Option<&PlanServer>),
    ) -> Result<Self, ToolError> {
        let log = Transcript::begin(cx)?;
        let record = Record::read(cx, &agent.name).await.unwrap_or_default();
        let usage =
            Usage { session_cost: record.session_cost, call_cost: record.call_cost, ..Usage::default() };
        Ok(Self {
            cx,
            host,
            agent,
            connection,
            servers: plan.map_or_else(|| json!([]), |plan| json!([plan.server()])),
            log,
            record,
            usage,
            max_cost: None,
            answer: String::new(),
            after_actions: 0,
            is_cut: false,
            actions: Actions::default(),
            is_replay: false,
        })
    }

    /// Runs the conversation, and returns the result of the call.
    pub(crate) async fn run(&mut self, wishes: &Wishes) -> Result<Value, ToolError> {
        self.max_cost = wishes.max_cost;
        let capabilities = self.initialize().await?;
        let is_continued = self.open_session(&capabilities, wishes).await?;
        let mut prompt = first_prompt(wishes, is_continued);
        let mut repairs = 0;
        loop {
            let stop = self.turn(&prompt).await?;
            self.check_stop(&stop)?;
            let Some(schema) = &wishes.schema else { return Ok(self.result(&stop, None)) };
            let problem = match self.value(schema) {
                Ok(value) => return Ok(self.result(&stop, Some(value))),
                Err(problem) => problem,
            };
            repairs += 1;
            let is_last = wishes.max_turns.is_some_and(|most| self.record.turns >= most);
            if repairs > MAX_REPAIRS || is_last {
                let turns = self.record.turns;
                let name = &self.agent.name;
                let message =
                    format!("agent `{name}` gave no answer that fits `schema` in {turns} turns: {problem}");
                return Err(ToolError::failed(message).with_class("invalid_answer"));
            }
            self.log.line(&format!("[answer refused] {problem}"))?;
            prompt = vec![text_block(&repair_prompt(&problem, schema))];
        }
    }

    async fn initialize(&mut self) -> Result<Value, ToolError> {
        let initialized = self.request("initialize", &initialize_params()).await?;
        let initialized = initialized.map_err(|refused| refused.into_error(&self.agent.name))?;
        check_version(&self.agent.name, &initialized)?;
        if let Some(method) = &self.agent.auth {
            let params = json!({"methodId": method});
            let done = self.request("authenticate", &params).await?;
            done.map_err(|refused| refused.into_error(&self.agent.name))?;
        }
        Ok(initialized["agentCapabilities"].clone())
    }

    /// Goes on with the session of an earlier start, or begins one. Returns whether an earlier prompt is in it.
    async fn open_session(&mut self, capabilities: &Value, wishes: &Wishes) -> Result<bool, ToolError> {
        let mut opened = None;
        if !self.record.session.is_empty() {
            opened = self.load_session(capabilities).await?;
        } else if let Some(session) = &wishes.resume {
            opened = self.adopt_session(capabilities, session, wishes.is_shared).await?;
        }
        let is_continued = opened.is_some() && self.record.is_prompted;
        let opened = match opened {
            Some(opened) => opened,
            None => self.new_session().await?,
        };
        if let Some(mode) = wishes.mode.as_deref() {
            self.set_mode(&opened, mode).await?;
        }
        Ok(is_continued)
    }

    /// Goes on with the session of another call: in a copy of it where the agent can make one, so that others may go on with it, too. A
    /// shared session is not copied.
    async fn adopt_session(
        &mut self,
        capabilities: &Value,
        session: &str,
        is_shared: bool,
    ) -> Result<Option<Value>, ToolError> {
        let fork = capabilities.pointer("/sessionCapabilities/fork");
        let can_fork = !is_shared && fork.is_some_and(|fork| !fork.is_null());
        session.clone_into(&mut self.record.session);
        let opened = if can_fork {
            self.fork_session(session).await?
        } else {
            self.load_session(capabilities).await?
        };
        if opened.is_some() {
            self.record.agent.clone_from(&self.agent.name);
            self.record.begin(self.cx).await?;
        }
        Ok(opened)
    }

    async fn fork_session(&mut self, session: &str) -> Result<Option<Value>, ToolError> {
        let name = &self.agent.name;
        let params = json!({"sessionId": session, "cwd": self.cx.dir, "mcpServers": self.servers});
        self.is_replay = true;
        let forked = self.request("session/fork", &params).await?;
        self.is_replay = false;
        let problem = match forked {
            Ok(forked) if !text(&forked, "sessionId").is_empty() => {
                text(&forked, "sessionId").clone_into(&mut self.record.session);
                let (session, own) = (plain(session, 100), plain(&self.record.session, 100));
                self.log.line(&format!("[session {own} continues a copy of {session}]"))?;
                return Ok(Some(forked));
            }
            Ok(_) => "it made a copy without an id".to_owned(),
            Err(refused) => refused.message,
        };
        self.cx.warn(format!(
            "agent `{name}` does not go on with session `{}` and starts over: {problem}",
            plain(session, 100)
        ));
        Ok(None)
    }

    async fn load_session(&mut self, capabilities: &Value) -> Result<Option<Value>, ToolError> {
        let name = &self.agent.name;
        let problem = if capabilities["loadSession"] == true {
            let params =
                json!({"sessionId": self.record.session, "cwd": self.cx.dir, "mcpServers": self.servers});
            self.is_replay = true;
            let loaded = self.request("session/load", &params).await?;
            self.is_replay = false;
            match loaded {
                Ok(loaded) => {
                    let session = plain(&self.record.session, 100);
                    self.log.line(&format!("[session {session} continued]"))?;
                    return Ok(Some(loaded));
                }
                Err(refused) => refused.message,
            }
        } else {
            "it cannot load sessions".to_owned()
        };
        self.cx.warn(format!("agent `{name}` does not go on with its session and starts over: {problem}"));
        Ok(None)
    }

    async fn new_session(&mut self) -> Result<Value, ToolError> {
        let params = json!({"cwd": self.cx.dir, "mcpServers": self.servers});
        let opened = self.request("session/new", &params).await?;
        let opened = opened.map_err(|refused| refused.into_error(&self.agent.name))?;
        let session = text(&opened, "sessionId");
        if session.is_empty() {
            return Err(self.violation("began a session without an id"));
        }
        self.record = Record {
            agent: self.agent.name.clone(),
            session: session.to_owned(),
            is_prompted: false,
            session_cost: 0.0,
            ..std::mem::take(&mut self.record)
        };
        self.usage.session_cost = 0.0;
        self.record.begin(self.cx).await?;
        self.log.line(&format!("[session {}]", plain(session, 100)))?;
        Ok(opened)
    }

    async fn set_mode(&mut self, opened: &Value, mode: &str) -> Result<(), ToolError> {
        let modes = opened.pointer("/modes/availableModes").and_then(Value::as_array);
        let ids: Vec<&str> = modes.into_iter().flatten().map(|mode| text(mode, "id")).collect();
        // An agent may name none, above all for a session that it loads. It then refuses what it does not know itself.
        if !ids.is_empty() && !ids.contains(&mode) {
            let known = plain(&ids.join(", "), 300);
            let message = format!("agent `{}` has no mode `{mode}`: it has {known}", self.agent.name);
            return Err(ToolError::failed(message).terminal());
        }
        let params = json!({"sessionId": self.record.session, "modeId": mode});
        let set = self.request("session/set_mode", &params).await?;
        set.map_err(|refused| refused.into_error(&self.agent.name)).map(drop)
    }

    /// Sends a prompt, and returns the reason why the turn has stopped.
    async fn turn(&mut self, prompt: &[Value]) -> Result<String, ToolError> {
        self.record.turns += 1;
        self.record.is_prompted = true;
        self.record.write(self.cx).await?;
        (self.answer, self.after_actions, self.is_cut) = (String::new(), 0, false);
        self.actions = Actions::default();
        let params = json!({"sessionId": self.record.session, "prompt": prompt});
        let ended = self.request("session/prompt", &params).await?;
        let ended = ended.map_err(|refused| refused.into_error(&self.agent.name))?;
        if let Some(tokens) = tokens_of_turn(&ended) {
            self.cx.report_usage(tokens);
        }
        if self.max_cost.is_some() && !self.usage.has_cost {
            let message = format!(
                "agent `{}` reports no cost, so `maxCost` cannot be kept: remove it, or limit `timeout`",
                self.agent.name
            );
            return Err(ToolError::failed(message).with_class("max_cost").terminal());
        }
        Ok(text(&ended, "stopReason").to_owned())
    }

    fn check_stop(&self, stop: &str) -> Result<(), ToolError> {
        let why = match stop {
            "end_turn" => return Ok(()),
            "max_tokens" => "reached the limit of its model's tokens",
            "max_turn_requests" => "reached its limit of requests to its model",
            "refusal" => "refuses to go on",
            "cancelled" => "cancelled its turn",
            other => {
                return Err(
                    self.violation(&format!("stopped for the unknown reason `{}`", plain(other, 100)))
                );
            }
        };
        let said = plain(self.message(), 300);
        let said = if said.is_empty() { said } else { format!(": {said}") };
        let message = format!("agent `{}` {why}{said}", self.agent.name);
        Err(ToolError::failed(message).with_class("agent_stopped"))
    }

    fn violation(&self, problem: &str) -> ToolError {
        ToolError::failed(format!("agent `{}` {problem}", self.agent.name)).with_class("agent_protocol")
    }

    /// Returns the answer of the turn: the messages after its last action, or all of them.
    fn message(&self) -> &str {
        let last = self.answer[self.after_actions..].trim();
        if last.is_empty() { self.answer.trim() } else { last }
    }

    fn value(&self, schema: &Value) -> Result<Value, String> {
        if self.is_cut {
            return Err(format!("the answer is longer than {MAX_ANSWER_BYTES} bytes"));
        }
        let value = answer::value_in(self.message())?;
        answer::check(schema, &value).map(|()| value)
    }

    fn result(&self, stop: &str, value: Option<Value>) -> Value {
        let text = self.message();
        let kept = taskpawl_text::head(text, self.cx.limits.keep_bytes);
        if self.is_cut || kept.len() < text.len() {
            self.cx.report_cut("/text");
        }
        let mut result = json!({
            "agent": self.agent.name,
            "session": self.record.session,
            "turns": self.record.turns,
            "stopReason": stop,
            "text": kept,
        });
        if let Some(value) = value {
            result["json"] = value;
        }
        result
    }

    /// Sends a request, and handles the messages of the agent until its answer arrives.
    async fn request(&mut self, method: &str, params: &Value) -> Result<Result<Value, Refused>, ToolError> {
        let id = self.connection.request(method, params);
        loop {
            let message = self.connection.next().await?;
            if message.get("method").is_some() {
                self.handle(&message).await?;
            } else if message["id"] == id {
                return Ok(Refused::or_result(&message));
            }
        }
    }

    /// Handles a request or a notification of the agent.
    async fn handle(&mut self, message: &Value) -> Result<(), ToolError> {
        let (method, params) = (text(message, "method"), &message["params"]);
        let Some(id) = message.get("id").filter(|id| !id.is_null()) else {
            return if method == "session/update" { self.update(&params["update"]).await } else { Ok(()) };
        };
        let answer = if method == "session/request_permission" {
            Ok(self.permission(params).await?)
        } else {
            match FileRequest::of(method, params) {
                Some(request) => self.file(request).await?,
                None => Err(RequestError::unknown(method)),
            }
        };
        self.connection.answer(id, answer);
        Ok(())
    }

    async fn update(&mut self, update: &Value) -> Result<(), ToolError> {
        let kind = text(update, "sessionUpdate");
        if kind == "usage_update" {
            return self.take_cost(update).await;
        }
        if self.is_replay {
            return Ok(());
        }
        match kind {
            "agent_message_chunk" => self.take_message(text(&update["content"], "text"))?,
            "tool_call" | "tool_call_update" => {
                self.actions.take(update);
                if let Some(title) = self.log.action(update)? {
                    self.after_actions = self.answer.len();
                    self.cx.report(title);
                }
            }
            "plan" => self.take_plan(&update["entries"])?,
            _ => {}
        }
        Ok(())
    }

    fn take_message(&mut self, text: &str) -> Result<(), ToolError> {
        self.log.message(text)?;
        let room = MAX_ANSWER_BYTES - self.answer.len().min(MAX_ANSWER_BYTES);
        let kept = taskpawl_text::head(text, room);
        self.is_cut |= kept.len() < text.len();
        self.answer.push_str(kept);
        Ok(())
    }

    /// Shows the plan of the agent as progress.
    fn take_plan(&mut self, entries: &Value) -> Result<(), ToolError> {
        let Some(entries) = entries.as_array().filter(|entries| !entries.is_empty()) else { return Ok(()) };
        let with = |status| entries.iter().filter(move |entry| text(entry, "status") == status);
        let done = with("completed").count();
        let current = with("in_progress").next().map_or("", |entry| text(entry, "content"));
        let line = format!("{done}/{} {}", entries.len(), plain(current, 200));
        self.log.line(&format!("[plan] {}", line.trim_end()))?;
        #[expect(clippy::cast_precision_loss, reason = "a plan has few entries")]
        let fraction = done as f64 / entries.len() as f64;
        self.cx.progress(fraction, line.trim_end());
        Ok(())
    }

    async fn take_cost(&mut self, update: &Value) -> Result<(), ToolError> {
        let more = self.usage.take_update(update, self.is_replay);
        self.record.session_cost = self.usage.session_cost;
        self.record.call_cost = self.usage.call_cost;
        let Some(more) = more else { return Ok(()) };
        self.cx.report_usage(more);
        self.record.write(self.cx).await?;
        match self.max_cost {
            Some(most) if self.usage.call_cost > most => {
                let (name, spent) = (&self.agent.name, self.usage.call_cost);
                let message =
                    format!("agent `{name}` has spent {spent:.2}, more than `maxCost`, which is {most:.2}");
                Err(ToolError::failed(message).with_class("max_cost").terminal())
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Decides on an action: the policy first, then a person. An action that a person has to decide on ends this start of the call,
    /// and the next one goes on with the answer.
    async fn decide(&mut self, action: &Action) -> Result<Result<(), String>, ToolError> {
        let is_confined = matches!(self.cx.sandbox, Sandbox::On(_));
        let (decision, why) = self.host.decide(action.tool, &action.args, is_confined);
        let decided = match decision {
            Decision::Allow => Ok(()),
            Decision::Deny => Err(why.unwrap_or_else(|| "the policy denies it".to_owned())),
            Decision::Ask if self.cx.questions.is_none() => {
                Err("a person has to allow it, and only calls of a run can ask".to_owned())
            }
            // Two actions that begin alike would be one question.
            Decision::Ask if !action.is_whole => {
                Err("a person has to allow it, and its arguments are too long to be shown".to_owned())
            }
            Decision::Ask => {
                let question = format!("Let agent `{}` do this? {}", self.agent.name, action.shown);
                let answer = self.cx.ask(Ask::new(question).option("yes").option("no")).await?;
                if answer == "yes" { Ok(()) } else { Err("a person refused it".to_owned()) }
            }
        };
        let shown = plain(&action.shown, 300);
        match &decided {
            Ok(()) => self.log.line(&format!("[allowed] {shown}"))?,
            Err(why) => self.log.line(&format!("[refused] {shown}: {}", plain(why, 300)))?,
        }
        Ok(decided)
    }

    async fn permission(&mut self, params: &Value) -> Result<Value, ToolError> {
        let action = Action::of_tool_call(&self.actions.whole(&params["toolCall"]));
        let decided = self.decide(&action).await?;
        let options = params["options"].as_array().map(Vec::as_slice).unwrap_or_default();
        let kinds =
            if decided.is_ok() { ["allow_once", "allow_always"] } else { ["reject_once", "reject_always"] };
        let chosen =
            kinds.iter().find_map(|kind| options.iter().find(|option| text(option, "kind") == *kind));
        Ok(match chosen {
            Some(option) => json!({"outcome": {"outcome": "selected", "optionId": option["optionId"]}}),
            // An agent that offers no such option gets no permission.
            None => json!({"outcome": {"outcome": "cancelled"}}),
        })
    }

    async fn file(&mut self, request: FileRequest) -> Result<Result<Value, RequestError>, ToolError> {
        let path = request.args.get("path").and_then(Value::as_str).unwrap_or_default();
        let shown = format!("{} `{path}`", request.tool);
        // The content is no part of a rule, and too long for a question.
        let mut args = request.args.clone();
        args.remove("content");
        let action = Action::new(request.tool, args, &shown);
        Ok(match self.decide(&action).await? {
            Ok(()) => request.run(self.cx).await,
            Err(why) => Err(RequestError::failed(why)),
        })
    }

    /// Returns the id of the session; empty before there is one.
    pub(crate) fn session(&self) -> &str {
        &self.record.session
    }
}

/// Returns the parameters of the first message. Terminals are not offered: programs of an agent run in its own sandbox.
pub(crate) fn initialize_params() -> Value {
    json!({
        "protocolVersion": PROTOCOL,
        "clientCapabilities": {"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": false},
        "clientInfo": {"name": "taskpawl", "title": "taskpawl", "version": env!("CARGO_PKG_VERSION")},
    })
}

/// Refuses an agent that speaks another version.
pub(crate) fn check_version(agent: &str, initialized: &Value) -> Result<(), ToolError> {
    let version = &initialized["protocolVersion"];
    if *version == PROTOCOL {
        return Ok(());
    }
    let version = plain(&version.to_string(), 50);
    let message =
        format!("agent `{agent}` speaks version {version} of the Agent Client Protocol, not {PROTOCOL}");
    Err(ToolError::failed(message).with_class("agent_protocol").terminal())
}

fn first_prompt(wishes: &Wishes, is_continued: bool) -> Vec<Value> {
    let mut prompt = Vec::new();
    if let Some(SentBack { text, is_of_person }) = &wishes.rework {
        // A session that goes on has the prompt already.
        if !is_continued {
            prompt.extend_from_slice(&wishes.prompt);
        }
        let why = if *is_of_person {
            "The work was done, and then a person read its result and sent it back. Correct the work as the person wants it, and keep what is already right. This is what the person said:"
        } else {
            "The work was done, and then a check of it failed. Correct the work so that the check succeeds, and keep what is already right. This is what the check said:"
        };
        prompt.push(text_block(&format!("{why}\n{text}")));
    } else if is_continued {
        prompt.push(text_block(
            "You were interrupted while you worked on the following. Look at what is already done, and go on from there.",
        ));
    }
    if wishes.rework.is_none() {
        prompt.extend_from_slice(&wishes.prompt);
    }
    if let Some(schema) = &wishes.schema {
        prompt.push(text_block(&format!(
            "When you are done, answer with one JSON value alone, without words around it, that fits this JSON Schema:\n{schema}"
        )));
    }
    prompt
}

fn repair_prompt(problem: &str, schema: &Value) -> String {
    format!(
        "Your answer does not fit: {problem}.\nAnswer again with one JSON value alone, without words around it, that fits this JSON Schema:\n{schema}"
    )
}

/// Makes a block of text.
pub(crate) fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}
