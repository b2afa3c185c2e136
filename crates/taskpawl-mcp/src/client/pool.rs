//! A server with its connections. The first call of a run opens the connection of that run.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value};
use taskpawl::tools::{CallContext, Programs, Sandbox, ToolError, check_foreign};
use tokio::sync::OnceCell;

use super::catalogue::{Catalogue, place, read_problem, write_problem};
use super::config::{ServerConfig, Transport, Variables};
use super::connection::{Answered, Connection, Failure};
use super::handler::locked;
use super::sandbox::is_same;
use super::secrets::{hidden, hidden_in};

/// Maximum number of failures in a row: failed starts and lost connections without a successful call in between.
const MAX_FAILURES: u32 = 3;

/// Description of a call with an unknown end.
const LOST: &str = "was lost during the call, and the progress of the call is unknown";

/// A server that can be called.
pub(super) struct Server {
    pub(super) config: ServerConfig,
    variables: Arc<Variables>,
    /// The path of the saved catalogue.
    cache: Option<PathBuf>,
    known: Mutex<Option<Arc<Catalogue>>>,
    /// The reason why the last start failed.
    problem: Mutex<Option<String>>,
    slots: Mutex<Vec<Slot>>,
}

/// The connection of a run. Calls with another sandbox get another connection, since a program keeps its sandbox.
struct Slot {
    run: Programs,
    sandbox: Sandbox,
    cell: Arc<OnceCell<Arc<Connection>>>,
    failures: u32,
    /// The reason of the last failure.
    problem: String,
}

impl Slot {
    fn is_of(&self, cx: &CallContext) -> bool {
        self.run.is_same(&cx.programs) && is_same(&self.sandbox, &cx.sandbox)
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Server {
    pub(super) fn new(config: ServerConfig, variables: Arc<Variables>, cache: Option<PathBuf>) -> Self {
        let cache = cache.map(|directory| place(&directory, &config.fingerprint()));
        let known = cache.as_deref().and_then(Catalogue::read).map(Arc::new);
        let problem = Mutex::new(cache.as_deref().and_then(read_problem));
        Self { config, variables, cache, known: Mutex::new(known), problem, slots: Mutex::default() }
    }

    /// Returns whether the server is a program, which may create files in the project.
    pub(super) fn is_program(&self) -> bool {
        matches!(self.config.transport, Transport::Stdio { .. })
    }

    /// Returns the known tools; `None` if the server never ran with this configuration.
    pub(super) fn known(&self) -> Option<Arc<Catalogue>> {
        locked(&self.known).clone()
    }

    /// Returns the reason why the last start failed, or `None` if it succeeded.
    pub(super) fn problem(&self) -> Option<String> {
        locked(&self.problem).clone()
    }

    fn set_problem(&self, problem: Option<&str>) {
        let mut known = locked(&self.problem);
        if known.as_deref() != problem
            && let Some(path) = &self.cache
        {
            // Without the file a later command only lacks the reason.
            let _ = write_problem(path, problem);
        }
        *known = problem.map(str::to_owned);
    }

    /// Starts the server, unless it runs, to learn its tools. It ends with the run of `cx`.
    pub(super) async fn learn(&self, cx: &CallContext) -> Result<(), ToolError> {
        let connection = self.connection(cx).await?;
        self.refresh(&connection, cx).await;
        Ok(())
    }

    /// Calls a tool.
    pub(super) async fn call(
        &self,
        cx: &CallContext,
        name: &str,
        tool: &str,
        args: Map<String, Value>,
    ) -> Result<Answered, ToolError> {
        let mut connection = cx.until_interrupted(self.connection(cx)).await??;
        if !cx.until_interrupted(connection.is_answering()).await? {
            // `is_answering` has ended the silent connection, so this starts the server again.
            connection = cx.until_interrupted(self.connection(cx)).await??;
        }
        self.refresh(&connection, cx).await;
        self.check(&connection.catalogue(), name, tool, &args)?;
        match connection.call(cx, tool, args).await {
            Ok(answer) => {
                self.succeeded(cx);
                Ok(answer)
            }
            Err(Failure::Call(error)) => {
                // An error answered by the server shows that the server works.
                if matches!(error, ToolError::Answered { .. }) {
                    self.succeeded(cx);
                }
                Err(error)
            }
            Err(Failure::Refused { problem, may_have_arrived }) => {
                self.succeeded(cx);
                Err(self.refused(&hidden(&problem, cx), may_have_arrived))
            }
            Err(Failure::Unreached(problem)) => {
                let problem = hidden(&problem, cx);
                let message = self.message("cannot be reached", &problem);
                self.failed(cx, &connection, problem);
                Err(ToolError::Server { message })
            }
            Err(Failure::Gone(problem)) => {
                let problem = hidden(&problem, cx);
                let message = self.message(LOST, &problem);
                self.failed(cx, &connection, problem);
                Err(ToolError::Lost { message })
            }
        }
    }

    /// Returns the failure of one call that says nothing about the server.
    fn refused(&self, problem: &str, may_have_arrived: bool) -> ToolError {
        if may_have_arrived {
            ToolError::Lost { message: self.message(LOST, problem) }
        } else {
            ToolError::Server { message: self.message("did not take the call", problem) }
        }
    }

    /// Checks the call against the current catalogue: the plan may have been checked against an older one.
    fn check(
        &self,
        catalogue: &Catalogue,
        name: &str,
        tool: &str,
        args: &Map<String, Value>,
    ) -> Result<(), ToolError> {
        let Some(entry) = catalogue.entry(tool) else {
            let message = format!("MCP server `{}` has no tool `{tool}` any more", self.config.name);
            return Err(ToolError::Server { message });
        };
        check_foreign(name, &entry.args, &Value::Object(args.clone()))
    }

    async fn refresh(&self, connection: &Connection, cx: &CallContext) {
        // If the list cannot be read, the call itself fails with the reason.
        if let Ok(true) = connection.refresh_if_stale().await {
            self.remember(connection.catalogue(), cx);
        }
    }

    fn remember(&self, catalogue: Arc<Catalogue>, cx: &CallContext) {
        let catalogue = hidden_in(catalogue, cx);
        let mut known = locked(&self.known);
        if known.as_deref() != Some(&*catalogue)
            && let Some(path) = &self.cache
        {
            // Without the file the server is asked again next time.
            let _ = catalogue.write(path);
        }
        *known = Some(catalogue);
    }

    /// Returns the connection of the run. Opens it if there is none that works.
    async fn connection(&self, cx: &CallContext) -> Result<Arc<Connection>, ToolError> {
        let cell = self.cell(cx)?;
        // Boxed, or the future of every call would have the size of the one that opens a connection.
        let open = Box::pin(async {
            let connection = Connection::open(&self.config, &*self.variables, cx).await?;
            self.remember(connection.catalogue(), cx);
            self.set_problem(None);
            Ok::<_, String>(Arc::new(connection))
        });
        // Calls that start together share one attempt. After a failure the cell stays empty, so that the next call
        // tries again.
        match cell.get_or_try_init(|| open).await {
            Ok(connection) => Ok(Arc::clone(connection)),
            Err(problem) => {
                let problem = hidden(&problem, cx);
                self.set_problem(Some(&problem));
                let message = self.message("could not be started", &problem);
                if let Some(slot) = slot_of(&mut locked(&self.slots), cx) {
                    slot.failures += 1;
                    slot.problem = problem;
                }
                Err(ToolError::Server { message })
            }
        }
    }

    fn cell(&self, cx: &CallContext) -> Result<Arc<OnceCell<Arc<Connection>>>, ToolError> {
        let mut slots = locked(&self.slots);
        // The servers of ended runs have ended with them.
        slots.retain(|slot| !slot.run.is_closed());
        let at = slots.iter().position(|slot| slot.is_of(cx)).unwrap_or_else(|| {
            slots.push(Slot {
                run: cx.programs.clone(),
                sandbox: cx.sandbox.clone(),
                cell: Arc::default(),
                failures: 0,
                problem: String::new(),
            });
            slots.len() - 1
        });
        let slot = &mut slots[at];
        if slot.cell.get().is_some_and(|connection| !connection.is_alive()) {
            slot.cell = Arc::default();
        }
        if slot.failures >= MAX_FAILURES && slot.cell.get().is_none() {
            let message = self.message(
                &format!("failed {} times in a row and is not started again", slot.failures),
                &slot.problem,
            );
            return Err(ToolError::Server { message });
        }
        Ok(Arc::clone(&slot.cell))
    }

    fn succeeded(&self, cx: &CallContext) {
        if let Some(slot) = slot_of(&mut locked(&self.slots), cx) {
            slot.failures = 0;
        }
    }

    /// Counts the failure of a connection once, even if several calls were lost with it.
    fn failed(&self, cx: &CallContext, connection: &Arc<Connection>, problem: String) {
        if let Some(slot) = slot_of(&mut locked(&self.slots), cx)
            && slot.cell.get().is_some_and(|current| Arc::ptr_eq(current, connection))
        {
            // The other lost calls no longer find their connection in the slot.
            slot.cell = Arc::default();
            slot.failures += 1;
            slot.problem = problem;
        }
    }

    fn message(&self, what: &str, problem: &str) -> String {
        format!("MCP server `{}` {what}: {problem}", self.config.name)
    }
}

fn slot_of<'a>(slots: &'a mut [Slot], cx: &CallContext) -> Option<&'a mut Slot> {
    slots.iter_mut().find(|slot| slot.is_of(cx))
}
