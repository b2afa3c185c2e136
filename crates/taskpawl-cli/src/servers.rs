//! MCP servers of the configuration, and the discovery of their tools.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use taskpawl::model::advice::{Advice, Hint};
use taskpawl::store::PlacementError;
use taskpawl::tools::{Tool, ToolFinder, Widening, content_hash, follow};
use taskpawl_mcp::{
    ServerConfig, ServerProblem, Servers, ServersOptions, Transport, read_servers, server_of,
};

use crate::context::Context;
use crate::error::CliError;
use crate::trust;

/// Servers that calls may use, and servers whose file is not trusted yet.
#[derive(Debug)]
pub(crate) struct McpServers {
    servers: Arc<Servers>,
    held: Vec<ServerConfig>,
    disabled: Vec<Disabled>,
}

/// A server that a file disables.
#[derive(Debug)]
struct Disabled {
    name: String,
    file: PathBuf,
}

impl McpServers {
    /// Reads the servers from the configuration and from the files of other programs. Starts no server.
    pub(crate) fn of(context: &Context) -> Result<Self, CliError> {
        let root = root(context)?;
        let mut reading =
            Reading { context, root: &root, usable: Vec::new(), held: Vec::new(), disabled: Vec::new() };
        // The order matters: of servers with the same name, the first is used.
        reading.own()?;
        for (file, of_project) in context.config()?.mcp().files() {
            reading.file(&place(context, &root, file), of_project)?;
        }
        // Other programs read this file of the project, so it is read without being configured.
        reading.file(&root.join(".mcp.json"), true)?;
        let Reading { mut usable, held, disabled, .. } = reading;
        widen(context, &root, &mut usable)?;
        let servers = Servers::new(usable, &options(context));
        Ok(Self { servers: Arc::new(servers), held, disabled })
    }

    /// Returns the tools of all servers that have run at least once.
    pub(crate) fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.servers.tools()
    }

    /// Returns whether a server is known to have the tool.
    pub(crate) fn has(&self, tool: &str) -> bool {
        self.servers.tools().iter().any(|known| known.spec().name == tool)
    }

    /// Returns the finder that starts a server when a run needs a tool that is not known yet.
    pub(crate) fn finder(&self) -> Arc<dyn ToolFinder> {
        Arc::clone(&self.servers) as Arc<dyn ToolFinder>
    }

    /// Returns the file that names the server of a tool.
    pub(crate) fn file(&self, tool: &str) -> Option<PathBuf> {
        Some(self.servers.of_tool(tool)?.config.file.clone())
    }

    /// Returns a hint about an unknown tool whose name has the form `SERVER/TOOL`.
    pub(crate) fn missing(&self, tool: &str) -> Option<Hint> {
        let (name, _) = tool.split_once('/')?;
        if let Some(held) = self.held.iter().find(|server| server.name == name) {
            return Some(trust::missing(&held.file));
        }
        match self.servers.of_tool(tool) {
            Some(state) if state.tools.is_none() => Some(
                Hint::new("the tools of MCP server ")
                    .data(name)
                    .text(" are not known before it has run once: a run starts it, and so does ")
                    .advice(CONNECT),
            ),
            Some(_) => None,
            None => Some(self.unconfigured(name).into()),
        }
    }

    /// Explains why no run here has a tool of the form `SERVER/TOOL`. Returns `None` for other names.
    pub(crate) fn lack(&self, tool: &str) -> Option<Lack> {
        let (name, own) = tool.split_once('/')?;
        if let Some(held) = self.held.iter().find(|server| server.name == name) {
            let file = held.file.display();
            let why =
                format!("`{file}` of the project names MCP server `{name}`, and is not trusted as it is now");
            return Some(Lack::new(tool, &why, Advice::Trust {}));
        }
        let Some(state) = self.servers.of_tool(tool) else {
            return Some(Lack::new(tool, &self.unconfigured(name), Advice::ConfigPath {}));
        };
        Some(if let Some(problem) = state.problem {
            let why = format!("MCP server `{name}` could not be started when it was tried last: {problem}");
            Lack::new(tool, &why, CONNECT)
        } else if state.tools.is_none() {
            let why = format!("the tools of MCP server `{name}` are not known before it has run once");
            Lack::new(tool, &why, CONNECT)
        } else if state.config.offers(own) {
            let why = format!("MCP server `{name}` has no such tool{}", self.near_tool(tool));
            Lack::new(tool, &why, CONNECT)
        } else {
            let file = state.config.file.display();
            let why = format!("`{file}` leaves it out of the tools of MCP server `{name}`");
            Lack::new(tool, &why, Advice::ListTools { connect: false })
        })
    }

    /// Returns the names of servers that a run starts on demand, without those that failed to start last time.
    pub(crate) fn found_later(&self) -> BTreeSet<String> {
        let states = self.servers.states();
        let later = states.iter().filter(|state| state.tools.is_none() && state.problem.is_none());
        later.map(|state| state.config.name.clone()).collect()
    }

    /// Explains that no server of this name is usable here.
    fn unconfigured(&self, name: &str) -> String {
        match self.disabled.iter().find(|server| server.name == name) {
            Some(Disabled { file, .. }) => format!(
                "`{}` switches MCP server `{name}` off: take that out of it to use the server",
                file.display()
            ),
            None => format!("no MCP server `{name}` is configured{}", self.near(name)),
        }
    }

    fn near_tool(&self, name: &str) -> String {
        let tools = self.servers.tools();
        let near = crate::text::nearest(name, tools.iter().map(|tool| &*tool.spec().name));
        near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
    }

    fn near(&self, name: &str) -> String {
        let states = self.servers.states();
        let near = crate::text::nearest(name, states.iter().map(|state| &*state.config.name));
        near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
    }

    /// Returns the servers, for a tool that starts them.
    pub(crate) fn shared(&self) -> Arc<Servers> {
        Arc::clone(&self.servers)
    }

    /// Returns the names of all servers that calls may use.
    pub(crate) fn all(&self) -> BTreeSet<String> {
        // Servers that need trust are not among these.
        self.servers.states().iter().map(|state| state.config.name.clone()).collect()
    }
}

/// The reason why no run here has a tool, with the command that helps.
#[derive(Debug)]
pub(crate) struct Lack {
    pub(crate) text: String,
    /// The part of `text` after the colon, without the name of the tool.
    pub(crate) why: String,
    pub(crate) advice: Advice,
}

impl Lack {
    pub(crate) fn new(tool: &str, why: &str, advice: Advice) -> Self {
        Self { text: format!("needs the tool `{tool}`: {why}"), why: why.to_owned(), advice }
    }
}

/// The command that starts all servers and reports their errors.
const CONNECT: Advice = Advice::ListTools { connect: true };

struct Reading<'a> {
    context: &'a Context,
    root: &'a Path,
    usable: Vec<ServerConfig>,
    held: Vec<ServerConfig>,
    disabled: Vec<Disabled>,
}

impl Reading<'_> {
    fn own(&mut self) -> Result<(), CliError> {
        for named in self.context.config()?.mcp().servers() {
            let Some(value) = &named.value else { continue };
            // Errors of this entry were reported when the configuration was read.
            match server_of(&named.name, &named.file, value) {
                Ok(Some(server)) => {
                    let hash = self.context.config()?.project_hash().filter(|_| named.is_of_project());
                    self.take(server, hash)?;
                }
                Ok(None) => {
                    self.disabled.push(Disabled { name: named.name.clone(), file: named.file.clone() });
                }
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Reads the servers of a file. A file inside the project may have been written by a program of a run, so an
    /// error in it only disables its servers. An error in any other file fails the command.
    fn file(&mut self, path: &Path, of_project: bool) -> Result<(), CliError> {
        let is_held = of_project || lies_in(path, self.root);
        let found = match read_servers(path, self.root) {
            Ok(found) => found,
            Err(error) if is_held => {
                self.context
                    .out()
                    .warn(&format!("{}; its servers are left out", CliError::from(error).message()));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let hash = is_held.then(|| content_hash(found.text.as_bytes()));
        for problem in found.problems {
            self.warn(&problem);
        }
        let off = found.disabled.into_iter().map(|name| Disabled { name, file: path.to_owned() });
        self.disabled.extend(off);
        for server in found.servers.into_iter().filter(|server| !is_ours(server)) {
            self.take(server, hash.as_deref())?;
        }
        Ok(())
    }

    /// Adds a server. `hash` is the content of a project's file: its servers are usable only if the user trusts that
    /// content.
    fn take(&mut self, server: ServerConfig, hash: Option<&str>) -> Result<(), CliError> {
        let is_usable = match hash {
            Some(hash) => trust::is_given(self.context, &server.file, hash)?,
            None => true,
        };
        if is_usable {
            self.usable.push(server);
        } else {
            self.held.push(server);
        }
        Ok(())
    }

    fn warn(&self, problem: &ServerProblem) {
        self.context.out().warn(&problem.to_string());
    }
}

/// Returns whether the path, its target or any link on the way lies in the project: a program could replace any of
/// these.
fn lies_in(path: &Path, root: &Path) -> bool {
    let (way, real_root) = (follow(path), follow(root).end);
    path.starts_with(root) || way.links.iter().chain([&way.end]).any(|place| place.starts_with(&real_root))
}

/// Returns whether the server is taskpawl's own, through which agents reach the plan. Calls of a plan must not use
/// it.
fn is_ours(server: &ServerConfig) -> bool {
    matches!(&server.transport, Transport::Stdio { command, args, .. }
        if command == "taskpawl" && args.first().is_some_and(|word| word == "mcp"))
}

/// Adds the sandbox exceptions that the user's configuration grants to servers.
fn widen(context: &Context, root: &Path, servers: &mut [ServerConfig]) -> Result<(), CliError> {
    let named: BTreeMap<&str, &Widening> = context
        .config()?
        .mcp()
        .servers()
        .into_iter()
        .rev()
        .map(|named| (&*named.name, &named.sandbox))
        .collect();
    for server in servers {
        if let Some(widening) = named.get(&*server.name) {
            let paths = |paths: &[PathBuf]| {
                paths.iter().map(|path| place(context, root, &path.to_string_lossy())).collect::<Vec<_>>()
            };
            let (read, write) = (paths(&widening.read), paths(&widening.write));
            server.sandbox = Widening { net: widening.net, read, write, ..Widening::default() };
        }
    }
    Ok(())
}

/// Creates a temporary directory that only the user can read.
pub(crate) fn private_directory(prefix: &str) -> std::io::Result<tempfile::TempDir> {
    tempfile::Builder::new().prefix(prefix).permissions(Permissions::from_mode(0o700)).tempdir()
}

/// Returns the root of the project, or the current directory without a project.
pub(crate) fn root(context: &Context) -> Result<PathBuf, CliError> {
    match context.place() {
        Ok(place) => Ok(place.root.clone()),
        Err(CliError::Placement(PlacementError::NoProject { .. })) => {
            Ok(context.environment().directory.clone())
        }
        Err(error) => Err(error),
    }
}

/// Resolves a path of the configuration against the home directory (`~/`) or the root of the project.
fn place(context: &Context, root: &Path, path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), context.environment().path("HOME")) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => root.join(path),
    }
}

fn options(context: &Context) -> ServersOptions {
    let variables = context.environment().variables();
    let look_up = move |name: &str| {
        let value = variables.get(std::ffi::OsStr::new(name))?;
        Some(value.to_string_lossy().into_owned())
    };
    let options = ServersOptions::new(Arc::new(look_up));
    match state_directory(context) {
        Some(directory) => options.with_cache(directory.join("taskpawl").join("mcp")),
        None => options,
    }
}

fn state_directory(context: &Context) -> Option<PathBuf> {
    let environment = context.environment();
    // The XDG specification says that a relative path has to be ignored.
    let own = environment.path("XDG_STATE_HOME").filter(|path| path.is_absolute());
    own.or_else(|| environment.path("HOME").map(|home| home.join(".local/state")))
}
