//! The handler of protocol requests. It serves both eras, and keeps no state of a connection apart from
//! subscriptions.

use std::sync::Arc;

use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, CompleteRequestParams,
    CompleteResult, ContentBlock, CustomRequest, CustomResult, ErrorCode, ErrorData, ExtensionCapabilities,
    GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult, Implementation,
    InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, ServerCapabilities, ServerConfig, SubscribeRequestParams,
    SubscriptionFilter, Tool, ToolAnnotations, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use serde_json::{Map, Value, json};
use taskpawl::Taskpawl;
use taskpawl::model::rules::all_offered;
use taskpawl::model::value::RunId;
use taskpawl::tools::{CallContext, RegisteredTool, call_guarded};
use taskpawl_text::error_chain;
use tokio::time::Instant;

use super::actions::Action;
use super::answer::Answer;
use super::caller::{Caller, agent_of, size_of};
use super::core::Core;
use super::corrections::with_accepted;
use super::error_text::{internal, named};
use super::http::Served;
use super::mcp_server::{McpServer, blocking};
use super::options::ServerOptions;
use super::reading::{Reading, foreign};
use super::refusal::Refused;
use super::tools::run_ready;
use super::{app, changes, completion, elicit, invalid_request, prompts, resources, tasks};

/// Instructions that every model reads before its first call.
const INSTRUCTIONS: &str = "taskpawl keeps a plan of tasks and runs their tool calls. Begin with plan_show. \
Status is derived from what ran; only work by hand is ended by you (task_update, action done or fail). \
agent: your own name, so that claims of several agents are told apart; give the same one in every call. \
request_id: a new name for each change; the same call repeated with it is done once. \
Answers name nextActions: exact calls that go on. askPersonToRun is for the user, at a terminal. \
A call that is refused has isError, a hint and nextActions. An answer has at most 2 kB; where it is cut, nextActions begin with the call for \
the rest, and max_bytes (up to 16000) asks for more.";

/// The instructions of a read-only server.
const INSTRUCTIONS_TO_READ: &str = "taskpawl keeps a plan of tasks and runs their tool calls. This server only reads. Begin with plan_show. \
Status is derived from what ran. agent: the name of your claims. Answers name nextActions: exact calls that go on. \
A call that is refused has isError, a hint and nextActions. An answer has at most 2 kB; where it is cut, nextActions begin with the call for \
the rest, and max_bytes (up to 16000) asks for more.";

/// The instructions of a server that runs inside a call.
const INSTRUCTIONS_WITHIN: &str = "taskpawl keeps the plan that this call belongs to. Begin with plan_show. \
Tasks of task_add and plan_write join that plan at once, in the name of the call, and its run runs them; both tools are there if the call \
has `planAccess: add`. Nothing else can be changed from here, and the answers end with the call. \
A call that is refused has isError and a hint. An answer has at most 2 kB; max_bytes (up to 16000) asks for more.";

impl McpServer {
    /// Returns the definitions of all tools.
    fn tools(&self) -> Vec<Tool> {
        let core = Core::all(self.options()).map(|tool| tool.definition(self.options()));
        core.chain(self.inner.others.iter().map(definition)).map(app::with_page).collect()
    }

    /// Returns whether the page can display answers of any tool.
    pub(super) fn has_page(&self) -> bool {
        self.tools().iter().any(|tool| app::draws(&tool.name))
    }

    async fn call_core(
        &self,
        tool: Core,
        mut request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, Refused> {
        let arguments = request.arguments.take().unwrap_or_default();
        // A nested call has no idempotent requests; its tasks are recognized by their ids.
        if self.options().within.is_some() && arguments.contains_key("request_id") {
            let problem = "there are no requests within a call; leave it out, and give tasks an `id` by which they are known again";
            return Err(Refused::argument("request_id", problem));
        }
        let (mut arguments, understood) = self.read(tool, arguments).await?;
        let made = self.admit(tool.reads(&arguments)).await?;
        let caller = Caller::of(self.plans(), self.options(), tool.name(), &mut arguments)?;
        // `run_ready` waits asynchronously and can answer with questions. All other tools only use the store.
        if tool == Core::RunReady {
            let arguments = run_ready::Arguments::read(arguments)?;
            return self.run_ready(caller, arguments, understood, request, context).await;
        }
        let (server, about) = (self.clone(), caller.clone());
        let same = tool.reads(&arguments).then(|| Action::again(tool, &arguments));
        let answer = blocking(move || tool.call(&caller, server.options(), arguments)).await?;
        let answer = answer.with("projectMade", made.into()).with("understood", json!(understood));
        Ok(self.fitted(same.into_iter().fold(answer, Answer::rest), &about).into())
    }

    /// Reads the arguments of a call as a model means them. Also returns what was understood.
    async fn read(
        &self,
        tool: Core,
        mut arguments: Map<String, Value>,
    ) -> Result<(Map<String, Value>, Vec<String>), Refused> {
        // Arguments that this server does not take are read as well: their tool says why it refuses them.
        let (plans, schema) = (self.plans().clone(), tool.definition(&ServerOptions::default()).input_schema);
        let read = blocking(move || {
            let mut reading = Reading::new(plans.manager(), plans.engine().tools());
            reading.read(tool, &schema, &mut arguments)?;
            Ok((arguments, reading.told()))
        });
        read.await
    }

    /// Makes an absent project before a tool writes to it. Returns a sentence if this call made it.
    async fn admit(&self, reads_only: bool) -> Result<Option<String>, Refused> {
        let Some(project) = self.options().project.clone() else { return Ok(None) };
        let admitted = blocking(move || {
            if reads_only { project.before_reading().map(|()| None) } else { project.before_writing() }
        });
        admitted.await.map_err(|what| Refused::NotHere { what, hint: None })
    }

    /// Removes the advice to claim another task if there is none to claim: that call would be refused as well.
    async fn without_vain_advice(&self, refused: Refused, agent: Option<String>) -> Refused {
        let Refused::Command(error) = refused else { return refused };
        let plans = self.plans_of(agent);
        let ServerOptions { lease, run, .. } = self.options();
        let next = plans.manager().command_to_claim(None, *lease, run.resources.clone());
        // The preview decides the claim without making it.
        if !Refused::is_held(&error) || blocking(move || plans.manager().preview(next)).await.is_ok() {
            return Refused::Command(error);
        }
        Refused::Alone(error)
    }

    /// Returns the answer for a refusal, with the advice that the model's rules accept from this caller now.
    async fn answer_of(&self, refused: Refused, agent: Option<String>, max_bytes: usize) -> CallToolResponse {
        let plans = self.plans_of(agent.clone());
        let refused = if matches!(refused, Refused::Corrected { .. }) {
            let plans = plans.clone();
            blocking(move || with_accepted(refused, &plans)).await
        } else {
            refused
        };
        let all = refused.advice();
        let tried = blocking(move || {
            let manager = plans.manager();
            manager.read(|view| Ok(all_offered(view, all, &manager.context())?))
        });
        // A store that cannot be read cannot confirm any advice.
        let advice = tried.await.unwrap_or_default();
        let answer = refused.into_answer(agent.as_deref(), &self.options().line, &advice);
        answer.only_here(self.options()).up_to(max_bytes).into_result().into()
    }

    fn plans_of(&self, agent: Option<String>) -> Taskpawl {
        agent.map_or_else(|| self.plans().clone(), |agent| self.plans().acting_as(agent))
    }

    /// Refuses a tool that does not exist. One of another program is refused with the call that does the same here.
    async fn refuse_unknown(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        agent: Option<String>,
        max_bytes: usize,
    ) -> Result<CallToolResponse, ErrorData> {
        let call = foreign::instead_of(name, arguments).filter(|call| call.is_here(self.options()));
        let Some(Action::Call { tool, arguments }) = call else { return Err(unknown_tool(name)) };
        let what = format!("no tool `{}` is here; `{tool}` does this", named(name));
        let call = Action::Call { tool, arguments };
        let refused = Refused::NotHere { what, hint: None }.corrected(call);
        Ok(self.answer_of(refused, agent, max_bytes).await)
    }

    /// Refuses a tool that exists only outside of a call.
    fn beyond(&self, name: &str) -> Option<Refused> {
        let access =
            self.options().within.filter(|_| self.options().has_plan && !self.options().read_only)?;
        Some(Core::of_name(name)?.beyond(access).into())
    }

    async fn run_ready(
        &self,
        caller: Caller,
        arguments: run_ready::Arguments,
        understood: Vec<String>,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, Refused> {
        let (wait, is_start) = (arguments.wait(), arguments.is_start() && request.request_state.is_none());
        let can_ask = elicit::is_possible(self, context);
        let id = match request.request_state {
            // A repeated call with a person's answers: its run exists already.
            Some(run) => run_ready::find(&caller, run).await?,
            None => run_ready::begin(self, &caller, arguments, can_ask).await?,
        };
        if let Some(responses) = request.input_responses {
            elicit::take(self, &id, responses);
        }
        let server = self.clone();
        // With the tasks extension the client polls the run, so this call does not wait.
        if is_start && tasks::is_known(context) {
            return Ok(blocking(move || tasks::created(caller.reads(), &id)).await?.into());
        }
        let end = Instant::now() + wait;
        let asks: fn(&Self, &RunId) -> bool = match (can_ask, is_newer(context)) {
            // Questions that this client cannot pass on do not end the wait.
            (false, _) => |_, _| false,
            (true, true) => |server, run| !elicit::requests(server, run).is_empty(),
            (true, false) => elicit::has_next,
        };
        loop {
            if !wait.is_zero() {
                run_ready::wait(self, &caller, &id, end, asks, context).await?;
            }
            if !asks(self, &id) {
                break;
            }
            if is_newer(context) {
                if let Some(questions) = elicit::input_required(self, &id) {
                    return Ok(questions.into());
                }
                break;
            }
            // The answer may arrive during this call or a later one.
            elicit::ask(self, &id, context).await;
            if Instant::now() >= end {
                break;
            }
        }
        let about = caller.clone();
        let answer = blocking(move || run_ready::describe(&server, caller.reads(), &id)).await?;
        let answer = answer.with("understood", json!(understood));
        Ok(self.fitted(answer, &about).into())
    }

    /// Returns the result of a call, in the size that its caller asked for.
    fn fitted(&self, answer: Answer, caller: &Caller) -> CallToolResult {
        let answer = answer.only_here(self.options()).in_name_of(caller.agent.as_deref());
        answer.up_to(caller.max_bytes).into_result()
    }

    /// Calls a tool of a set.
    async fn call_other(
        &self,
        tool: RegisteredTool,
        arguments: Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResult {
        // To-do lists work without a project: they are then kept in memory.
        let _ = self.admit(tool.spec().hints.read_only).await;
        let project = self.plans().engine().project();
        let output = project.files.join("mcp").join(uuid::Uuid::new_v4().to_string());
        let mut cx = CallContext::new(&project.root, output);
        self.plans().manager().actor().clone_into(&mut cx.actor);
        cx.cancel = context.ct.clone();
        match call_guarded(tool, cx, Value::Object(arguments)).await {
            Ok(Value::String(text)) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Ok(value) => CallToolResult::structured(value),
            Err(error) => CallToolResult::error(vec![ContentBlock::text(error_chain(&error))]),
        }
    }
}

/// Returns the definition of a tool of a set.
fn definition(tool: &RegisteredTool) -> Tool {
    let spec = tool.spec();
    let object = |schema: &Value| schema.as_object().cloned().unwrap_or_default();
    let hints = spec.hints;
    let annotations = ToolAnnotations::new()
        .read_only(hints.read_only)
        .destructive(hints.destructive)
        .idempotent(hints.idempotent)
        .open_world(hints.open_world);
    Tool::new(spec.name.clone(), spec.description.clone(), object(&spec.args_schema))
        .with_annotations(annotations)
}

impl Served for McpServer {
    fn connected(&self) -> Self {
        Self { subscriptions: Some(Arc::default()), ..self.clone() }
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let extensions: ExtensionCapabilities = self.has_page().then(app::extension).into_iter().collect();
        let capabilities = ServerCapabilities::builder()
            .enable_extensions_with(extensions)
            .enable_completions()
            .enable_prompts()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tasks()
            .build();
        let info = ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("taskpawl", env!("CARGO_PKG_VERSION")));
        match self.options() {
            ServerOptions { has_plan: false, .. } => info,
            ServerOptions { within: Some(_), .. } => info.with_instructions(INSTRUCTIONS_WITHIN),
            ServerOptions { read_only: true, .. } => info.with_instructions(INSTRUCTIONS_TO_READ),
            _ => info.with_instructions(INSTRUCTIONS),
        }
    }

    /// Answers the handshake of the older era.
    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let mut result = self.negotiate_initialize(&request)?;
        context.peer.set_peer_info(request);
        // A client without a session cannot subscribe, so the capability is removed.
        if let (None, Some(resources)) = (&self.subscriptions, &mut result.capabilities.resources) {
            resources.subscribe = None;
        }
        Ok(result)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        invalid_request::from_beginning(request)?;
        Ok(ListToolsResult::with_all_items(self.tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let agent = agent_of(request.arguments.as_ref());
        let max_bytes = size_of(request.arguments.as_ref());
        let is_other = self.inner.others.get(&request.name).is_some();
        let prefixed = || foreign::without_prefix(&request.name, self.options()).filter(|_| !is_other);
        if let Some(tool) = Core::named(&request.name, self.options()).or_else(prefixed) {
            return Ok(match self.call_core(tool, request, &context).await {
                Ok(answer) => answer,
                Err(refused) => {
                    let refused = self.without_vain_advice(refused, agent.clone()).await;
                    self.answer_of(refused, agent, max_bytes).await
                }
            });
        }
        if let Some(refused) = self.beyond(&request.name) {
            return Ok(self.answer_of(refused, agent, max_bytes).await);
        }
        let arguments = request.arguments.unwrap_or_default();
        match self.inner.others.get(&request.name) {
            Some(tool) => Ok(self.call_other(tool.clone(), arguments, &context).await.into()),
            None => self.refuse_unknown(&request.name, &arguments, agent, max_bytes).await,
        }
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        invalid_request::from_beginning(request)?;
        Ok(ListPromptsResult::with_all_items(prompts::list(self)))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let (server, arguments) = (self.clone(), request.arguments.unwrap_or_default());
        let prompt = blocking(move || prompts::get(&server, &request.name, &arguments)).await?;
        Ok(prompt.into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let (server, cursor) = (self.clone(), request.and_then(|request| request.cursor));
        blocking(move || resources::list(&server, cursor.as_deref())).await
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        invalid_request::from_beginning(request)?;
        let templates = if self.options().has_plan { resources::templates() } else { Vec::new() };
        Ok(ListResourceTemplatesResult::with_all_items(templates))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let server = self.clone();
        let contents = blocking(move || resources::read(&server, &request.uri)).await?;
        Ok(ReadResourceResult::new(contents).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        if !self.options().has_plan {
            return Ok(CompleteResult::default());
        }
        let manager = self.plans().manager().clone();
        let found = blocking(move || completion::complete(&manager, &request)).await;
        Ok(CompleteResult::new(found.map_err(|error| internal(&error))?))
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut accepted = requested.clone();
        if let Some(uris) = &mut accepted.resource_subscriptions {
            uris.retain(|uri| resources::is_subscribable(self, uri));
        }
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        changes::listen(self, context).await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        match &self.subscriptions {
            Some(subscriptions) => subscriptions.add(self, context.peer, request.uri).await,
            None => Err(no_connection()),
        }
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let subscriptions = self.subscriptions.as_ref().ok_or_else(no_connection)?;
        subscriptions.remove(&request.uri);
        Ok(())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(invalid_request::refused(request, is_newer(&context)))
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        tasks::get(self, request.task_id).await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        tasks::update(self, request.task_id, request.input_responses).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        tasks::cancel(self, request.task_id).await
    }
}

/// Returns whether a request belongs to the newer era, in which servers send no requests of their own.
fn is_newer(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

fn no_connection() -> ErrorData {
    let message = "there is no session: begin one with `initialize`, or use `subscriptions/listen` of protocol 2026-07-28";
    ErrorData::invalid_request(message, None)
}

fn unknown_tool(name: &str) -> ErrorData {
    ErrorData::new(
        ErrorCode::INVALID_PARAMS,
        format!("no tool `{}`: tools/list has those that there are", named(name)),
        None,
    )
}
