//! Fixtures for the conformance suite of the protocol: its tools, resources and prompts, in addition to those of the
//! plan. They use the same handler and the same listener.
//!
//! `content` has fixed answers, `asking` questions to a client of the older era, `rounds` questions to a client of
//! the newer one, and `jobs` tools that run as tasks on the server's plan. The server answers everything else itself.

#![expect(deprecated, reason = "the suite tests what is going away, too")]

mod asking;
mod content;
mod fixture;
mod jobs;
mod rounds;

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult,
    ErrorData, GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult,
    InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ServerConfig, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
    Tool, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::SubscriptionContext;
use tokio_util::sync::CancellationToken;

use self::fixture::{Context, SCHEME};
use self::rounds::Rounds;
use super::http::{HttpListener, Served, serve_behind};
use super::mcp_server::McpServer;
use super::resources::Place;

/// Serves requests with the token until `stop` fires, with everything that the conformance suite expects.
///
/// The server should pass on the questions of runs ([`approve_elicited`](super::ServerOptions::approve_elicited)).
pub async fn serve_conformance(server: &McpServer, listener: HttpListener, stop: CancellationToken) {
    let fixture = Fixture { server: server.clone(), rounds: Arc::default() };
    serve_behind(&fixture, listener, stop).await;
}

/// A server with the fixtures of the suite.
#[derive(Debug, Clone)]
struct Fixture {
    server: McpServer,
    rounds: Arc<Rounds>,
}

impl Served for Fixture {
    fn connected(&self) -> Self {
        Self { server: self.server.connected(), ..self.clone() }
    }
}

/// Returns the server's own resource for an address that the suite subscribes to: the digest.
fn own(uri: String) -> String {
    if uri.starts_with(SCHEME) { Place::Digest.uri() } else { uri }
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let mut config = self.server.get_info();
        config.capabilities.logging.get_or_insert_default();
        config
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.server.supported_protocol_versions()
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: Context,
    ) -> Result<InitializeResult, ErrorData> {
        let mut result = self.server.initialize(request, context).await?;
        result.capabilities.logging.get_or_insert_default();
        Ok(result)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        content::tools().into_iter().find(|tool| tool.name == name)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut result = self.server.list_tools(request, context).await?;
        result.tools.extend(content::tools());
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.to_string();
        if let Some(result) = content::result(&name) {
            return Ok(result.into());
        }
        if let Some(answer) = self.rounds.answer(&request, &context) {
            return answer;
        }
        if let Some(answer) = jobs::call(&self.server, &request, &context).await {
            return answer;
        }
        match asking::call(&request, &context).await {
            Some(answer) => answer,
            None => self.server.call_tool(request, context).await,
        }
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        let mut result = self.server.list_prompts(request, context).await?;
        result.prompts.extend(content::prompts());
        Ok(result)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        if let Some(answer) = rounds::prompt(&request) {
            return Ok(answer);
        }
        match content::prompt(&request) {
            Some(prompt) => Ok(prompt.into()),
            None => self.server.get_prompt(request, context).await,
        }
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut result = self.server.list_resources(request, context).await?;
        result.resources.extend(content::resources());
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut result = self.server.list_resource_templates(request, context).await?;
        result.resource_templates.extend(content::templates());
        Ok(result)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match content::read(&request.uri) {
            Some(result) => Ok(result.into()),
            None => self.server.read_resource(request, context).await,
        }
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: Context,
    ) -> Result<CompleteResult, ErrorData> {
        self.server.complete(request, context).await
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.server.accepted_subscription_filter(requested)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.server.listen(context).await
    }

    async fn subscribe(
        &self,
        mut request: SubscribeRequestParams,
        context: Context,
    ) -> Result<(), ErrorData> {
        request.uri = own(request.uri);
        self.server.subscribe(request, context).await
    }

    async fn unsubscribe(
        &self,
        mut request: UnsubscribeRequestParams,
        context: Context,
    ) -> Result<(), ErrorData> {
        request.uri = own(request.uri);
        self.server.unsubscribe(request, context).await
    }

    async fn get_task(&self, request: GetTaskParams, context: Context) -> Result<GetTaskResult, ErrorData> {
        self.server.get_task(request, context).await.map(jobs::as_tool)
    }

    async fn update_task(&self, mut request: UpdateTaskParams, context: Context) -> Result<(), ErrorData> {
        request.input_responses.values_mut().for_each(jobs::as_approval);
        self.server.update_task(request, context).await
    }

    async fn cancel_task(&self, request: CancelTaskParams, context: Context) -> Result<(), ErrorData> {
        // Cancelled twice: the first request lets running calls end, and the suite does not wait for that.
        self.server.cancel_task(request.clone(), context.clone()).await?;
        self.server.cancel_task(request, context).await
    }
}
