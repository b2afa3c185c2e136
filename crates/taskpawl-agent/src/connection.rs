//! The program of an agent, and the messages between it and the call: JSON-RPC, one message a line.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};
use taskpawl_text::error_chain;
use taskpawl_tools::{CallContext, Denials, OutputFiles, Piped, PipedEnd, Program, SpawnError, ToolError};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::unix::pipe;

use crate::definition::AgentDefinition;
use crate::plan_server::PlanServer;
use crate::words::{last_lines, plain};

/// Longest message, in bytes. Agents send whole files in one.
const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// Most output that is no message, in bytes, such as a greeting.
const MAX_NOISE_BYTES: usize = 64 << 10;

/// Most bytes of standard error.
const MAX_STDERR_BYTES: u64 = 64 << 20;

/// Bytes of standard error in messages.
const LAST_WORDS_BYTES: usize = 4 << 10;

/// Time in which output of a program that has ended arrives. Processes that it left behind may hold the pipe open.
const LAST_OUTPUT: Duration = Duration::from_millis(200);

/// Time for a program to end by itself, and again after it was told to end.
const GRACE: Duration = Duration::from_secs(1);

/// A running agent. Dropping it ends the program with all its descendants.
#[derive(Debug)]
pub(crate) struct Connection {
    name: String,
    piped: Option<Piped>,
    input: pipe::Sender,
    output: BufReader<pipe::Receiver>,
    /// The beginning of a line whose end has not arrived yet.
    line: Vec<u8>,
    noise: usize,
    /// Bytes that wait until the program reads.
    outgoing: Vec<u8>,
    has_ended: bool,
    received: u64,
    max_received: u64,
    next_id: i64,
    denials: Denials,
}

impl Connection {
    /// Starts the program of an agent in the sandbox of the call.
    pub(crate) async fn open(
        agent: &AgentDefinition,
        cx: &CallContext,
        plan: Option<&PlanServer>,
    ) -> Result<Self, ToolError> {
        let program = Program {
            argv: plan.map_or_else(|| agent.argv.clone(), |plan| plan.relayed(&agent.argv)),
            cwd: cx.dir.clone(),
            environment: cx.program_environment(filled(&agent.env, cx).await?),
            stdin: None,
            output: OutputFiles { stdout: cx.stdout_path(), stderr: cx.stderr_path() },
            sandbox: cx.sandbox.clone(),
            handover: plan.and_then(|_| cx.handover()),
        };
        let denials = Denials::of(cx, &program);
        let mut piped = match cx.programs.start_piped(program, cx.deadline).await {
            Ok(piped) => piped,
            Err(error) => return Err(not_started(error, &denials).await),
        };
        let Some((input, output)) = piped.take_pipes() else {
            return Err(ToolError::failed(format!("agent `{}` has no pipes", agent.name)));
        };
        Ok(Self {
            name: agent.name.clone(),
            piped: Some(piped),
            input,
            output: BufReader::new(output),
            line: Vec::new(),
            noise: 0,
            outgoing: Vec::new(),
            has_ended: false,
            received: 0,
            max_received: cx.limits.output_bytes.saturating_mul(4),
            next_id: 0,
            denials,
        })
    }

    /// Queues a request. Returns its id.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> i64 {
        self.next_id += 1;
        let id = self.next_id;
        self.queue(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Queues a notification.
    pub(crate) fn notify(&mut self, method: &str, params: &Value) {
        self.queue(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Queues the answer to a request of the agent.
    pub(crate) fn answer(&mut self, id: &Value, answer: Result<Value, RequestError>) {
        let message = match answer {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(RequestError { code, message }) => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
            }
        };
        self.queue(&message);
    }

    fn queue(&mut self, message: &Value) {
        self.outgoing.extend_from_slice(message.to_string().as_bytes());
        self.outgoing.push(b'\n');
    }

    /// Returns the next message of the agent, and sends what is queued meanwhile.
    ///
    /// # Errors
    /// The agent has ended, or sends what is no message.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn next(&mut self) -> Result<Value, ToolError> {
        loop {
            let happened = self.happened().await;
            match happened {
                Happened::Line => {
                    if let Some(message) = self.message()? {
                        return Ok(message);
                    }
                }
                Happened::Written => {}
                Happened::Ended => self.has_ended = true,
                Happened::TooMuchNoise => {
                    return Err(self.fault("writes more than 64 MiB to its standard error"));
                }
                Happened::TooLong => {
                    return Err(
                        self.fault(&format!("sends a message of more than {} MiB", MAX_MESSAGE_BYTES >> 20))
                    );
                }
                Happened::Closed => return Err(self.gone().await),
            }
        }
    }

    async fn happened(&mut self) -> Happened {
        let Self { piped, input, output, line, outgoing, has_ended, .. } = self;
        let ended = async {
            match piped {
                Some(piped) if !*has_ended => piped.ended(MAX_STDERR_BYTES).await,
                Some(_) | None => std::future::pending().await,
            }
        };
        let written = async {
            if outgoing.is_empty() || *has_ended {
                return std::future::pending().await;
            }
            // A failed write is the end of the program, which is noticed by itself.
            let is_writable = input.writable().await.is_ok();
            match input.try_write(outgoing) {
                Ok(count) => drop(outgoing.drain(..count)),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock && is_writable => {}
                Err(_) => outgoing.clear(),
            }
            Happened::Written
        };
        let read = async {
            if !*has_ended {
                return read_line(output, line).await;
            }
            tokio::time::timeout(LAST_OUTPUT, read_line(output, line)).await.unwrap_or(Happened::Closed)
        };
        tokio::select! {
            // Messages that were sent before the end count.
            biased;
            read = read => read,
            written = written => written,
            is_end = ended => if is_end { Happened::Ended } else { Happened::TooMuchNoise },
        }
    }

    /// Parses the line. `None` is noise, such as a greeting.
    fn message(&mut self) -> Result<Option<Value>, ToolError> {
        let line = std::mem::take(&mut self.line);
        self.received = self.received.saturating_add(line.len() as u64);
        if self.received > self.max_received {
            return Err(ToolError::OutputLimit { limit_bytes: self.max_received, result: None });
        }
        let line = line.trim_ascii();
        if line.first() != Some(&b'{') {
            self.noise += line.len();
            return if self.noise > MAX_NOISE_BYTES {
                Err(self.fault("prints what is no message of the Agent Client Protocol"))
            } else {
                Ok(None)
            };
        }
        match taskpawl_json::read::<Value>(line) {
            Ok(message) => Ok(Some(message)),
            Err(error) => Err(self.fault(&format!("sent a message that cannot be read: {error}"))),
        }
    }

    fn fault(&self, problem: &str) -> ToolError {
        ToolError::failed(format!("agent `{}` {problem}", self.name)).with_class("agent_protocol")
    }

    /// Describes the end of the program.
    async fn gone(&mut self) -> ToolError {
        let name = &self.name;
        let Some(piped) = self.piped.take() else {
            return ToolError::failed(format!("agent `{name}` has ended")).with_class("agent_ended");
        };
        match piped.end(GRACE, LAST_WORDS_BYTES).await {
            Ok(PipedEnd { code, signal, stderr }) => {
                let how = match signal {
                    Some(signal) => format!("was ended by signal {signal}"),
                    None => format!("ended with exit code {code}"),
                };
                let words = last_lines(&stderr.text);
                let words = if words.is_empty() { String::new() } else { format!(": {words}") };
                let hint = self.denials.hint(&stderr.text).await;
                let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                let message = format!("agent `{name}` {how} before its turn was over{words}{hint}");
                ToolError::failed(message).with_class("agent_ended")
            }
            Err(error) => not_started(error, &self.denials).await,
        }
    }

    /// Ends the program: it may end by itself when its input is closed.
    pub(crate) async fn close(mut self) {
        let piped = self.piped.take();
        let _ = self.flush().await;
        drop(self.input);
        if let Some(piped) = piped {
            // The end of the program does not matter any more.
            let _ = piped.end(GRACE, 0).await;
        }
    }

    /// Sends what is queued, for a short time.
    async fn flush(&mut self) -> Result<(), tokio::time::error::Elapsed> {
        let send = async {
            while !self.outgoing.is_empty() && self.input.writable().await.is_ok() {
                match self.input.try_write(&self.outgoing) {
                    Ok(count) => drop(self.outgoing.drain(..count)),
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                    Err(_) => break,
                }
            }
        };
        tokio::time::timeout(LAST_OUTPUT, send).await
    }
}

/// The event that ends a wait of a connection.
enum Happened {
    /// A line is complete.
    Line,
    /// A part of the queue was written.
    Written,
    /// The program has ended; its last output may still arrive.
    Ended,
    /// The output is closed.
    Closed,
    /// A line is too long.
    TooLong,
    /// Standard error is too long.
    TooMuchNoise,
}

/// Reads to the end of a line. Cancel-safe: a partial line stays in `line`.
async fn read_line(output: &mut BufReader<pipe::Receiver>, line: &mut Vec<u8>) -> Happened {
    loop {
        let read = match output.fill_buf().await {
            Ok([]) | Err(_) => return Happened::Closed,
            Ok(read) => read,
        };
        let end = read.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(read.len(), |end| end + 1);
        if line.len() + taken > MAX_MESSAGE_BYTES + 1 {
            return Happened::TooLong;
        }
        line.extend_from_slice(&read[..taken]);
        output.consume(taken);
        if end.is_some() {
            return Happened::Line;
        }
    }
}

/// An error that answers a request of the agent.
#[derive(Debug)]
pub(crate) struct RequestError {
    pub(crate) code: i64,
    pub(crate) message: String,
}

impl RequestError {
    /// The client does not have the method.
    pub(crate) fn unknown(method: &str) -> Self {
        Self { code: -32601, message: format!("the client has no method `{}`", plain(method, 100)) }
    }

    /// The request failed.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { code: -32603, message: message.into() }
    }
}

async fn not_started(error: SpawnError, denials: &Denials) -> ToolError {
    if matches!(error, SpawnError::SupervisorLost) {
        return ToolError::Lost { message: error.to_string() };
    }
    match denials.hint_for_start(&error).await {
        Some(hint) => ToolError::OutsideSandbox { source: error, hint: Box::new(hint) },
        None => error.into(),
    }
}

/// Returns the variables with the values of their secrets, which are removed from everything that the run stores.
async fn filled(
    env: &BTreeMap<String, String>,
    cx: &CallContext,
) -> Result<BTreeMap<String, String>, ToolError> {
    let names: BTreeSet<String> =
        env.values().filter_map(|value| secret_name(value)).map(str::to_owned).collect();
    let mut values = BTreeMap::new();
    if let Some(first) = names.first() {
        let Some(vault) = cx.secrets.clone() else {
            return Err(ToolError::failed(format!("the secret `{first}` is there in runs alone")));
        };
        // Resolving may ask a person or wait for a program, which blocks.
        let resolved = tokio::task::spawn_blocking(move || vault.resolve(&names)).await;
        values = resolved.map_err(|error| ToolError::failed(error_chain(&error)))??;
    }
    let value_of =
        |text: &String| secret_name(text).and_then(|name| values.get(name)).unwrap_or(text).clone();
    Ok(env.iter().map(|(name, text)| (name.clone(), value_of(text))).collect())
}

/// Returns the name in a text that is one reference to a secret.
fn secret_name(text: &str) -> Option<&str> {
    text.strip_prefix("${secret:")?.strip_suffix('}')
}
