//! A server with its connections: one for each run, made by the first call.

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

/// How often a server may fail to start, or end by itself, without having answered a call in between.
const MAX_FAILURES: u32 = 3;

/// What is said of a call of which nobody knows how far it came.
const LOST: &str = "was lost during the call, and nobody knows how far it came";

/// A server that can be called.
pub(super) struct Server {
    pub(super) config: ServerConfig,
    variables: Arc<Variables>,
    /// Where the catalogue is kept.
    cache: Option<PathBuf>,
    known: Mutex<Option<Arc<Catalogue>>>,
    /// Why it could not be started when that was tried last.
    problem: Mutex<Option<String>>,
    slots: Mutex<Vec<Slot>>,
}

/// The connection of a run, or of those of its calls that may do more than others.
struct Slot {
    run: Programs,
    sandbox: Sandbox,
    cell: Arc<OnceCell<Arc<Connection>>>,
    failures: u32,
    /// Why it failed last.
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

    /// Returns whether it is a program, which may make files here.
    pub(super) fn is_program(&self) -> bool {
        matches!(self.config.transport, Transport::Stdio { .. })
    }

    /// Returns what is known of the tools; `None` where the server never ran with this configuration.
    pub(super) fn known(&self) -> Option<Arc<Catalogue>> {
        locked(&self.known).clone()
    }

    /// Returns why the server could not be started when that was tried last.
    pub(super) fn problem(&self) -> Option<String> {
        locked(&self.problem).clone()
    }

    fn set_problem(&self, problem: Option<&str>) {
        let mut known = locked(&self.problem);
        if known.as_deref() != problem
            && let Some(path) = &self.cache
        {
            // Without it a later command says less.
            let _ = write_problem(path, problem);
        }
        *known = problem.map(str::to_owned);
    }

    /// Starts the server to learn its tools, if it does not run. It ends when the run does that `cx` belongs to.
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

    /// The catalogue that plans were checked against may be an old one.
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
        // One that cannot say it is noticed by the call.
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
            // Without it the server is asked again next time.
            let _ = catalogue.write(path);
        }
        *known = Some(catalogue);
    }

    /// Returns the connection of the run, made now if there is none that works.
    async fn connection(&self, cx: &CallContext) -> Result<Arc<Connection>, ToolError> {
        let cell = self.cell(cx)?;
        // Boxed, since whoever holds the future of a call would hold all of this.
        let open = Box::pin(async {
            let connection = Connection::open(&self.config, &*self.variables, cx).await?;
            self.remember(connection.catalogue(), cx);
            self.set_problem(None);
            Ok::<_, String>(Arc::new(connection))
        });
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

    /// Counts the failure of a connection once, however many calls were lost with it.
    fn failed(&self, cx: &CallContext, connection: &Arc<Connection>, problem: String) {
        if let Some(slot) = slot_of(&mut locked(&self.slots), cx)
            && slot.cell.get().is_some_and(|current| Arc::ptr_eq(current, connection))
        {
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
