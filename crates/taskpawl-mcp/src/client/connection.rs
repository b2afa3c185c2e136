//! One running server, from its start to its end.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, JsonObject, MetaObject,
    PaginatedRequestParams, ProtocolVersion, RequestMetaObject, ServerResult, SubscriptionFilter,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, Peer, PeerRequestOptions, RequestHandle,
    RoleClient, RunningService, RunningServiceCancellationToken, ServiceError, Subscription,
};
use rmcp::transport::StreamableHttpClientTransport;
use serde_json::Value;
use taskpawl::tools::{CallContext, Environment, OutputFiles, Piped, Program, ToolError};
use tokio::sync::watch;

use super::catalogue::{Catalogue, Entry, MAX_TOOLS};
use super::config::{ServerConfig, Transport, Variables};
use super::downloads;
use super::handler::{Handler, Shared, locked};
use super::http::{self, HttpClient};
use super::inexact::INEXACT;
use super::limits::{CatalogueSize, MAX_STDERR_BYTES};
use super::result::error_text;
use super::sandbox::{self, Held};
use super::secrets::filled;
use super::stdio::Stdio;
use super::words::{chain, last_lines, plain};

/// Time limit for a server to start. Some servers download themselves first.
const START: Duration = Duration::from_mins(2);

/// Time limit for a server to list all of its tools.
const LIST: Duration = Duration::from_secs(30);

/// Time limit for a server to show that it still answers.
const PROBE: Duration = Duration::from_secs(2);

/// Pause before the next subscription to tool changes, after a server has ended one.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);

/// Time for a server to end by itself, and again after it was told to end.
const GRACE: Duration = Duration::from_secs(1);

/// Bytes at the end of a server's standard error that are read when it has ended.
const LAST_WORDS_BYTES: usize = 4096;

/// Time for standard error that a server wrote before its answer to arrive: it uses another pipe than the answer.
const LAG: Duration = Duration::from_millis(50);

/// Metadata field of a request by which a server can recognize a repeated call.
const KEY: &str = "taskpawl/idempotencyKey";

/// The reason why a call has no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server is gone. It is unknown whether the call had an effect.
    Gone(String),
    /// The call did not reach the server.
    Unreached(String),
    /// The server answered over HTTP, but not with a message of the protocol. Other calls may still succeed.
    Refused {
        /// The answer, described in words.
        problem: String,
        /// True if the call may have had an effect.
        may_have_arrived: bool,
    },
    /// A failure of this call that says nothing about the connection.
    Call(ToolError),
}

/// The answer of a server to a call.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) result: CallToolResult,
    /// The denial of its sandbox that made the call fail, with the remedy, if one is known.
    pub(super) hint: Option<String>,
}

/// A running server. Dropping it ends the server.
#[derive(Debug)]
pub(super) struct Connection {
    running: RunningService<RoleClient, Handler>,
    shared: Arc<Shared>,
    catalogue: Mutex<Arc<Catalogue>>,
    /// The program; `None` for a server over HTTP.
    program: Option<Started>,
}

/// The program of a server.
#[derive(Debug)]
pub(super) struct Started {
    /// The end of the program; sent by `keep` when it is gone.
    end: watch::Receiver<Option<End>>,
    held: Held,
    /// The file with its standard error, without secrets.
    stderr: PathBuf,
}

/// The end of a program.
#[derive(Clone, Debug)]
struct End {
    words: String,
    /// The denial of its sandbox that stopped it, if one is known.
    hint: Option<String>,
}

impl Started {
    /// Returns the number of bytes that it has written to its standard error.
    fn written(&self) -> u64 {
        std::fs::metadata(&self.stderr).map_or(0, |data| data.len())
    }

    /// Returns the last part of its standard error, beginning at `since` bytes at the earliest.
    fn last_words(&self, since: u64) -> io::Result<String> {
        let mut file = File::open(&self.stderr)?;
        let most = LAST_WORDS_BYTES as u64;
        let from = file.metadata()?.len().saturating_sub(most).max(since);
        file.seek(SeekFrom::Start(from))?;
        let mut words = Vec::new();
        file.take(most).read_to_end(&mut words)?;
        Ok(String::from_utf8_lossy(&words).into_owned())
    }
}

impl Connection {
    /// Starts a server or connects to it, and lists its tools.
    pub(super) async fn open(
        config: &ServerConfig,
        variables: &Variables,
        cx: &CallContext,
    ) -> Result<Self, String> {
        let transport = filled(&config.transport, variables, cx).await?;
        let opened = match &transport {
            Transport::Http { url, headers } => Self::reach(url, headers).await?,
            Transport::Stdio { .. } => {
                let started = Self::start_in_either_way(config, &transport, variables, cx).await;
                started.map_err(|Refusal { words, hint, .. }| {
                    let held = sandbox::of(config, cx);
                    let advice = downloads::advice(&config.name, &transport, &held);
                    let advice = advice.or_else(|| sandbox::advice(config, &held));
                    with_hint(words, advice.or(hint))
                })?
            }
        };
        opened.get_ready().await?;
        Ok(opened)
    }

    /// Subscribes to tool changes: servers of the newer era report them to subscribers only. Without an answer in
    /// time, or without that capability, the tools count as fixed.
    async fn listen(&self) {
        let listens = self.running.peer_info().is_some_and(|server| {
            let tools = server.capabilities.tools.as_ref();
            server.protocol_version >= ProtocolVersion::V_2026_07_28
                && tools.is_some_and(|tools| tools.list_changed == Some(true))
        });
        if !listens {
            return;
        }
        let peer = self.running.peer().clone();
        if let Some(subscription) = subscribe(&peer).await {
            // The task ends with the connection, whose end fires `over`.
            drop(spawn(hear_changes(subscription, peer, Arc::clone(&self.shared))));
        }
    }

    /// Returns a connection without requests so far.
    pub(super) fn new(
        running: RunningService<RoleClient, Handler>,
        shared: Arc<Shared>,
        program: Option<Started>,
    ) -> Self {
        Self { running, shared, catalogue: Mutex::default(), program }
    }

    /// Lists the tools, and subscribes to changes of them.
    pub(super) async fn get_ready(&self) -> Result<(), String> {
        // The order matters: a change between listing and subscribing would be missed.
        self.listen().await;
        self.refresh().await
    }

    async fn reach(url: &str, headers: &BTreeMap<String, String>) -> Result<Self, String> {
        let shared = Arc::new(Shared::default());
        let (client, config) = HttpClient::new(url, headers, Arc::clone(&shared))?;
        let transport = StreamableHttpClientTransport::with_client(client, config);
        let serve = Handler(Arc::clone(&shared)).serve_with_lifecycle(transport, newer_first());
        let running = match tokio::time::timeout(START, serve).await {
            Ok(running) => running.map_err(|error| words(&error))?,
            Err(_) => return Err(too_slow()),
        };
        stop_with(&shared, running.cancellation_token());
        Ok(Self::new(running, shared, None))
    }

    async fn start_in_either_way(
        config: &ServerConfig,
        transport: &Transport,
        variables: &Variables,
        cx: &CallContext,
    ) -> Result<Self, Refusal> {
        match Self::start(config, transport, variables, cx, newer_first()).await {
            // Some servers exit at a request that they do not know. They are started again and get the older
            // handshake first.
            Err(Refusal { is_closed: true, .. }) => {
                Self::start(config, transport, variables, cx, ClientLifecycleMode::Initialize).await
            }
            other => other,
        }
    }

    async fn start(
        config: &ServerConfig,
        transport: &Transport,
        variables: &Variables,
        cx: &CallContext,
        mode: ClientLifecycleMode,
    ) -> Result<Self, Refusal> {
        let program = program(config, transport, variables, cx);
        let (held, stderr) = (Held::of(config, cx, &program), program.output.stderr.clone());
        let deadline = tokio::time::Instant::now() + START;
        let mut piped = match cx.programs.start_piped(program, Some(deadline)).await {
            Ok(piped) => piped,
            Err(error) => {
                let hint = held.hint_for_start(&error).await;
                return Err(Refusal { is_closed: false, words: chain(&error), hint });
            }
        };
        let ends = piped.take_pipes().ok_or_else(|| Refusal::of("it has no pipes".to_owned()))?;
        let shared = Arc::new(Shared::default());
        let (sender, end) = watch::channel(None);
        // The task ends with the program, which ends with the connection or with the run.
        drop(spawn(keep(piped, Arc::clone(&shared), held.clone(), sender)));
        let transport = Stdio::new(ends, Arc::clone(&shared));
        let serve = Handler(Arc::clone(&shared)).serve_with_lifecycle(transport, mode);
        let serve = tokio::time::timeout(START, serve);
        let served = tokio::select! {
            // A handshake that succeeded counts, even if the program ended at the same moment: the next call notices
            // the end.
            biased;
            served = serve => served,
            () = shared.over.cancelled() => return Err(refused(&shared, end, "it ended before it was ready").await),
        };
        let problem = match served {
            Ok(Ok(running)) => {
                stop_with(&shared, running.cancellation_token());
                return Ok(Self::new(running, shared, Some(Started { end, held, stderr })));
            }
            Ok(Err(error)) => words(&error),
            Err(_) => return Err(Refusal::of(too_slow())),
        };
        Err(refused(&shared, end, &problem).await)
    }

    /// Returns whether calls can still be made.
    pub(super) fn is_alive(&self) -> bool {
        !self.shared.over.is_cancelled() && !self.running.is_closed() && !self.running.is_transport_closed()
    }

    /// Returns the tools that the server listed last.
    pub(super) fn catalogue(&self) -> Arc<Catalogue> {
        Arc::clone(&locked(&self.catalogue))
    }

    /// Probes a server that sent nothing during an interrupted call. Ends the connection if it does not answer.
    pub(super) async fn is_answering(&self) -> bool {
        if !self.shared.is_suspect.swap(false, Ordering::Relaxed) {
            return true;
        }
        // Newer servers have no `ping`, and both eras have a list of tools.
        let asked = tokio::time::timeout(PROBE, self.running.list_tools(None)).await;
        if asked.is_err() {
            self.shared.give_up("it does not answer".to_owned());
        }
        asked.is_ok()
    }

    /// Lists the tools again if the server has reported a change. Returns whether it did.
    pub(super) async fn refresh_if_stale(&self) -> Result<bool, String> {
        if !self.shared.is_stale.swap(false, Ordering::Relaxed) {
            return Ok(false);
        }
        self.refresh().await.map(|()| true)
    }

    async fn refresh(&self) -> Result<(), String> {
        let listed = tokio::time::timeout(LIST, self.list()).await;
        let catalogue = listed.map_err(|_| "it does not say which tools it has".to_owned())??;
        *locked(&self.catalogue) = Arc::new(catalogue);
        Ok(())
    }

    async fn list(&self) -> Result<Catalogue, String> {
        let (mut tools, mut size) = (Vec::new(), CatalogueSize::default());
        let mut cursor = None;
        loop {
            let mut page = PaginatedRequestParams::default();
            page.cursor = cursor;
            let listed = self.running.list_tools(Some(page)).await;
            let listed = match listed {
                Ok(listed) => listed,
                Err(error) => return Err(self.blame(&error).await),
            };
            take_tools(&mut tools, &listed.tools, &mut size)?;
            match listed.next_cursor {
                // An empty page adds nothing to the bounded size of the catalogue. It ends the list, or a server
                // could send such pages until the time limit.
                Some(next) if !listed.tools.is_empty() => cursor = Some(next),
                Some(_) | None => return Ok(Catalogue { tools }),
            }
        }
    }

    /// Calls a tool and waits for its answer, or until the call is interrupted.
    pub(super) async fn call(
        &self,
        cx: &CallContext,
        tool: &str,
        args: JsonObject,
    ) -> Result<Answered, Failure> {
        let mut meta = MetaObject::default();
        meta.insert(KEY.to_owned(), Value::String(cx.idempotency_key.clone()));
        if !cx.traceparent.is_empty() {
            meta.insert("traceparent".to_owned(), Value::String(cx.traceparent.clone()));
        }
        let options = PeerRequestOptions::no_options().with_meta(RequestMetaObject(meta));
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(args);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let received = self.shared.received.load(Ordering::Relaxed);
        let written = self.program.as_ref().map_or(0, Started::written);
        let handle = self.running.send_cancellable_request(request, options).await;
        let handle = handle.map_err(|_| Failure::Unreached("its connection is closed".to_owned()))?;
        let _routed = self.shared.route(handle.progress_token.clone(), cx);
        let mut handle = Asked(Some(handle));
        tokio::select! {
            // An answer that has arrived counts, even if the time limit passes at the same moment.
            biased;
            answer = handle.answer() => {
                handle.0.take();
                match answer {
                    Ok(answer) => Ok(self.explained(answered(answer)?, written).await),
                    Err(error) => Err(self.failure(error, written).await),
                }
            }
            error = cx.interrupted() => {
                drop(handle);
                // A server that sent anything during the call is alive and merely slow. A silent one is probed before
                // the next call.
                if self.shared.received.load(Ordering::Relaxed) == received {
                    self.shared.is_suspect.store(true, Ordering::Relaxed);
                }
                Err(Failure::Call(error))
            }
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "whatever else it may be, the connection is to blame")]
    async fn failure(&self, error: ServiceError, written: u64) -> Failure {
        match &error {
            ServiceError::McpError(error) if error.code == INEXACT => Failure::Call(ToolError::InvalidJson {
                what: "the result of the server".to_owned(),
                problem: error.message.to_string(),
                result: Box::new(Value::Null),
            }),
            ServiceError::McpError(error) => {
                let message = format!(
                    "the server refused the call: {} (code {})",
                    plain(&error.message, 1000),
                    error.code.0
                );
                let message = with_hint(message, self.hint(&error.message, written).await);
                let result = Box::new(error.data.clone().unwrap_or_default());
                Failure::Call(ToolError::Answered { message, result })
            }
            ServiceError::TransportSend(sent) => match http::find(sent.error.as_ref()) {
                Some(error) if error.is_answer() => {
                    Failure::Refused { problem: chain(error), may_have_arrived: error.may_have_arrived() }
                }
                Some(error) if !error.may_have_arrived() => Failure::Unreached(chain(error)),
                Some(error) => Failure::Gone(chain(error)),
                None if self.program.is_none() => Failure::Unreached(chain(sent.error.as_ref())),
                None => Failure::Gone(self.blame(&error).await),
            },
            _ => Failure::Gone(self.blame(&error).await),
        }
    }

    /// Describes the end of the server. Its own last words are preferred to the error of the protocol.
    async fn blame(&self, error: &ServiceError) -> String {
        match &self.program {
            Some(program) => {
                let refusal = refused(&self.shared, program.end.clone(), &error.to_string()).await;
                with_hint(refusal.words, refusal.hint)
            }
            None => self.shared.problem().unwrap_or_else(|| chain(error)),
        }
    }

    /// Returns the denial of its sandbox that made the server fail: by its message, else by its standard error since
    /// the byte `written`.
    async fn hint(&self, said: &str, written: u64) -> Option<String> {
        let program = self.program.as_ref().filter(|program| program.held.is_on())?;
        if let Some(hint) = program.held.hint(said).await {
            return Some(hint);
        }
        tokio::time::sleep(LAG).await;
        program.held.hint(&program.last_words(written).ok()?).await
    }

    async fn explained(&self, result: CallToolResult, written: u64) -> Answered {
        let hint = match error_text(&result) {
            Some(said) => self.hint(&said, written).await,
            None => None,
        };
        Answered { result, hint }
    }
}

fn with_hint(words: String, hint: Option<String>) -> String {
    match hint {
        Some(hint) => format!("{words}; {hint}"),
        None => words,
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Closes the transport (`stop_with`) and ends the program (`keep`).
        self.shared.over.cancel();
    }
}

/// Adds a page of tools, within the bounds of a catalogue.
pub(super) fn take_tools(
    tools: &mut Vec<Entry>,
    listed: &[rmcp::model::Tool],
    size: &mut CatalogueSize,
) -> Result<(), String> {
    for tool in listed {
        let entry = Entry::of(tool);
        size.add(&serde_json::to_vec(&entry).unwrap_or_default())?;
        tools.push(entry);
    }
    if tools.len() > MAX_TOOLS {
        return Err(format!("it has more than {MAX_TOOLS} tools"));
    }
    Ok(())
}

pub(super) fn newer_first() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::LATEST],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
}

/// The reason why a server could not be started.
struct Refusal {
    /// It ended, or closed its output.
    is_closed: bool,
    words: String,
    /// The denial of its sandbox that stopped it, if one is known.
    hint: Option<String>,
}

impl Refusal {
    fn of(words: String) -> Self {
        Self { is_closed: false, words, hint: None }
    }
}

/// A request without an answer so far. If it is dropped, the server is told that the call is cancelled.
struct Asked(Option<RequestHandle<RoleClient>>);

impl Asked {
    async fn answer(&mut self) -> Result<ServerResult, ServiceError> {
        match &mut self.0 {
            Some(handle) => (&mut handle.rx).await.unwrap_or(Err(ServiceError::TransportClosed)),
            None => Err(ServiceError::TransportClosed),
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if let Some(handle) = self.0.take() {
            // `drop` cannot wait: the first poll queues the message, and it does not matter whether it arrives.
            let _ = handle.cancel(Some("the call is over".to_owned())).now_or_never();
        }
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "all others are results of other requests")]
pub(super) fn answered(answer: ServerResult) -> Result<CallToolResult, Failure> {
    let refused = |message: &str| {
        Err(Failure::Call(ToolError::Answered { message: message.to_owned(), result: Box::default() }))
    };
    match answer {
        ServerResult::CallToolResult(result) => Ok(result),
        ServerResult::InputRequiredResult(_) => {
            refused("the server asks for input in the middle of the call, which a run cannot give")
        }
        _ => refused("the server answered with something that is no result of a tool"),
    }
}

/// Returns the program of a server. Its standard error goes to the file of the call that starts it.
fn program(config: &ServerConfig, transport: &Transport, variables: &Variables, cx: &CallContext) -> Program {
    let mut program = Program {
        argv: Vec::new(),
        cwd: cx.root.clone(),
        environment: Environment::default(),
        stdin: None,
        handover: None,
        output: OutputFiles { stdout: cx.stdout_path(), stderr: cx.stderr_path() },
        sandbox: sandbox::of(config, cx),
    };
    if let Transport::Stdio { command, args, env, cwd } = transport {
        program.argv.push(command.clone());
        program.argv.extend_from_slice(args);
        let offline = downloads::variables(transport, &program.sandbox);
        program.environment = sandbox::environment(offline, env, variables, cx);
        // Relative to the project, as in other programs that read these files. An absolute path replaces the root.
        program.cwd.extend(cwd.as_ref().map(PathBuf::from));
    }
    program
}

/// Owns the program of a server: ends it with the run or the connection, and reports its end.
async fn keep(mut piped: Piped, shared: Arc<Shared>, held: Held, end: watch::Sender<Option<End>>) {
    let closing = piped.closing().clone();
    tokio::select! {
        has_ended = piped.ended(MAX_STDERR_BYTES) => {
            if !has_ended {
                shared.give_up(format!("it wrote more than {} MiB to its standard error", MAX_STDERR_BYTES >> 20));
            }
        }
        () = closing.cancelled() => {}
        () = shared.over.cancelled() => {}
    }
    // Closes its input, on which most servers end by themselves.
    shared.over.cancel();
    let ended = piped.end(GRACE, LAST_WORDS_BYTES).await;
    let ended = match ended {
        Ok(ended) => {
            let how = match ended.signal {
                Some(signal) => format!("it was ended by signal {signal}"),
                None => format!("it ended with exit code {}", ended.code),
            };
            let words = match last_lines(&ended.stderr.text) {
                words if words.is_empty() => how,
                words => format!("{how}; its last words: {words}"),
            };
            End { words, hint: held.hint(&ended.stderr.text).await }
        }
        Err(error) => End { words: chain(&error), hint: held.hint_for_start(&error).await },
    };
    end.send_replace(Some(ended));
}

/// Opens a subscription to changes of the tools.
async fn subscribe(peer: &Peer<RoleClient>) -> Option<Subscription> {
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    // Dropped at the time limit, the future ends the subscription at the server, too.
    let asked = tokio::time::timeout(PROBE, peer.listen(filter)).await;
    let subscription = asked.ok()?.ok()?;
    (subscription.acknowledged().tools_list_changed == Some(true)).then_some(subscription)
}

/// Marks the catalogue as stale when the server reports a change, until the connection is over. A server may end the
/// subscription at any time. Another one is opened after a pause, and changes in between are assumed.
async fn hear_changes(subscription: Subscription, peer: Peer<RoleClient>, shared: Arc<Shared>) {
    let mut current = Some(subscription);
    let listen = async {
        while let Some(mut subscription) = current.take() {
            while let Ok(Some(_)) = subscription.next().await {
                shared.is_stale.store(true, Ordering::Relaxed);
            }
            tokio::time::sleep(LISTEN_AGAIN).await;
            current = subscribe(&peer).await;
            shared.is_stale.store(true, Ordering::Relaxed);
        }
    };
    tokio::select! {
        () = listen => {}
        () = shared.over.cancelled() => {}
    }
}

/// Stops the protocol's service when the connection is given up.
fn stop_with(shared: &Arc<Shared>, conversation: RunningServiceCancellationToken) {
    let over = shared.over.clone();
    // The task ends with the connection, whose end fires `over`.
    drop(spawn(async move {
        over.cancelled().await;
        conversation.cancel();
    }));
}

/// Returns the best known reason why a program is no usable server.
async fn refused(shared: &Shared, mut end: watch::Receiver<Option<End>>, problem: &str) -> Refusal {
    // A program that has closed its output is about to end. Any other is ended now, so that its last words can be
    // read.
    shared.over.cancel();
    // `keep` needs up to two grace periods to end a program.
    let ended = tokio::time::timeout(GRACE * 3, end.wait_for(Option::is_some)).await;
    let ended = ended.ok().and_then(Result::ok).and_then(|words| words.clone());
    match (shared.problem(), ended) {
        (Some(problem), _) => Refusal::of(problem),
        (None, Some(End { words, hint })) => Refusal { is_closed: true, words, hint },
        (None, None) => Refusal::of(problem.to_owned()),
    }
}

fn too_slow() -> String {
    format!("it was not ready after {} seconds", START.as_secs())
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the others say in their own words what is wrong")]
fn words(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => words(fallback),
        ClientInitializeError::JsonRpcError(error) => format!("it refuses to begin: {}", error.message),
        ClientInitializeError::TransportError { error, .. } => match http::find(error.error.as_ref()) {
            Some(error) => chain(error),
            None => chain(error.error.as_ref()),
        },
        other => chain(other),
    }
}

#[expect(clippy::disallowed_methods, reason = "the task is owned by the connection that it belongs to")]
fn spawn<F>(future: F) -> tokio::task::JoinHandle<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    tokio::spawn(future)
}
