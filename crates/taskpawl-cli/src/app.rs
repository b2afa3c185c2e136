//! State that all commands share; each part is opened when a command first needs it.

mod place;

use std::cell::{Cell, OnceCell, RefCell};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::DateTime;
use taskpawl::model::advice::{Advised, CommandLine, Hint, PlanWords};
use taskpawl::model::rules::AbsentTools;
use taskpawl::model::task::Origin;
use taskpawl::model::value::Timestamp;
use taskpawl::store::{self, Location, StorePlacement};
use taskpawl::tools::{
    CEILING, ConfiguredSecrets, Confinement, Policy, PolicyFiles, Power, PowerInForce, Ruling, SandboxPlaces,
};
use taskpawl::{Builder, FixedSource, Manager, SandboxMode, SandboxSettings, Source, SystemSource, Taskpawl};
use taskpawl_todo::Lists;

pub(crate) use place::made_text;

use crate::args::Global;
use crate::audit;
use crate::caller::Caller;
use crate::commands::sandbox::SandboxArgs;
use crate::commands::{allow, question};
use crate::config::{self, ColorWord, Config, Key};
use crate::environment::{Environment, Terminal};
use crate::error::CliError;
use crate::grants;
use crate::output::Output;
use crate::servers::McpServers;
use crate::text::Paint;
use crate::todo_lists;
use crate::toolbox::{self, Absent, Toolbox};
use crate::trust::real;

/// The file name of a project's policy, which lies at the root of the project.
pub(crate) const PROJECT_POLICY: &str = "taskpawl-policy.toml";

/// The state of one command of the command line.
#[derive(Debug)]
pub(crate) struct App {
    global: Global,
    environment: Environment,
    caller: OnceCell<Caller>,
    config: OnceCell<Config>,
    place: OnceCell<StorePlacement>,
    policy: OnceCell<Policy>,
    plans: OnceCell<Taskpawl>,
    toolbox: OnceCell<Arc<Toolbox>>,
    servers: OnceCell<Arc<McpServers>>,
    lists: OnceCell<Lists>,
    /// True if the command neither runs tool calls nor changes the plan.
    only_reads: Cell<bool>,
    /// The errors of project files that a reading command ignored.
    aside: RefCell<Vec<CliError>>,
}

impl App {
    /// Returns an app that has not opened or read anything yet.
    pub(crate) fn new(global: Global, environment: Environment) -> Self {
        let (config, place, policy, plans, toolbox, servers, lists) = Default::default();
        let (caller, only_reads, aside) = Default::default();
        Self {
            global,
            environment,
            caller,
            config,
            place,
            policy,
            plans,
            toolbox,
            servers,
            lists,
            only_reads,
            aside,
        }
    }

    /// Makes the app ignore an invalid project configuration with a warning. Only for commands that run and change
    /// nothing: a program of a plan may have damaged the file, and a person who investigates must still be able to
    /// read the store.
    pub(crate) fn only_reads(&self) {
        self.only_reads.set(true);
        // Errors outside the project's file are not ignored; the command reports them itself.
        let _ = self.config();
        for error in self.aside.borrow().iter() {
            self.warn_of(error);
        }
    }

    /// Returns the errors of ignored project files, each as message and hint.
    pub(crate) fn left_aside(&self) -> Vec<(String, String)> {
        let line = self.command_line(Vec::new());
        let hint = |error: &CliError| error.hint().map(|hint| hint.format_with(&line)).unwrap_or_default();
        let told = |error: &CliError| (error.message(), hint(error));
        self.aside.borrow().iter().map(told).collect()
    }

    fn warn_of(&self, error: &CliError) {
        let out = self.out();
        let hint = error.hint().map(|hint| format!("; {}", hint.format_with(&*out.line))).unwrap_or_default();
        out.warn(&format!(
            "{}\nthis command goes on without that file, and those that run or change something do not{hint}",
            error.message()
        ));
    }

    /// Returns an app for the project of another directory; it has not opened or read anything yet.
    pub(crate) fn in_directory(&self, directory: PathBuf) -> Self {
        Self::new(self.global.clone(), self.environment.in_directory(directory))
    }

    /// Returns whether data and errors are printed as JSON. `--fields` implies it.
    pub(crate) fn is_json(&self) -> bool {
        self.global.json || !self.global.fields.is_empty()
    }

    /// Returns the environment of the process.
    pub(crate) fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Returns the caller of the command: a person, a program or an agent.
    pub(crate) fn caller(&self) -> &Caller {
        self.caller.get_or_init(|| {
            let is_call = question::is_within_call(self);
            Caller::find(&self.environment, is_call, self.global.actor.is_some())
        })
    }

    /// Returns the streams that are terminals.
    pub(crate) fn terminal(&self) -> Terminal {
        self.environment.terminal
    }

    /// Returns the configuration, which is read on the first call.
    pub(crate) fn config(&self) -> Result<&Config, CliError> {
        get_or_try_init(&self.config, || {
            let actor = self.global.actor.clone().map(|actor| (Key::Actor, actor));
            let color = self.global.color.map(|color| (Key::Color, format!("{color:?}").to_lowercase()));
            let flags: Vec<_> = actor.into_iter().chain(color).collect();
            match Config::read(&self.environment, &flags) {
                Err(error) if self.only_reads.get() => {
                    let rest = Config::read_without_project(&self.environment, &flags)?;
                    // The warning cannot be printed yet: `out` needs this configuration for its colours.
                    self.aside.borrow_mut().push(error.into());
                    Ok(rest)
                }
                read => Ok(read?),
            }
        })
    }

    /// Returns the form of the output: JSON or text, fields, colours and width.
    pub(crate) fn out(&self) -> Output {
        let terminal = self.terminal();
        // An invalid configuration does not matter for colours. The command that needs other settings reports it.
        let color = self.config().map_or(ColorWord::Auto, |config| config.color);
        let paint = |is_terminal: bool| Paint { is_on: self.is_coloured(color, is_terminal) };
        Output {
            is_json: self.is_json(),
            is_pretty: terminal.stdout,
            fields: self.global.fields.clone(),
            is_quiet: self.global.quiet,
            paint: paint(terminal.stdout),
            paint_err: paint(terminal.stderr),
            width: terminal.width,
            now: self.source().ok().filter(|_| terminal.stdout).map(|source| source.now()),
            line: Arc::new(self.command_line(Vec::new())),
        }
    }

    fn is_coloured(&self, color: ColorWord, is_terminal: bool) -> bool {
        match color {
            ColorWord::Always => true,
            ColorWord::Never => false,
            ColorWord::Auto => self.environment.has_colours(is_terminal),
        }
    }

    /// Returns the flags that an advised command needs in order to use the same store and actor as this one. `run`
    /// holds extra words for commands that run tasks.
    fn command_line(&self, run: Vec<String>) -> CommandLine {
        CommandLine { store: self.global.store.clone(), actor: self.global.actor.clone(), run, plan: None }
    }

    /// Adds the flags of this command to the advised commands. A memory store ends with the process, so its advice is
    /// dropped.
    pub(crate) fn write_advice(&self, actions: &mut Vec<Advised>) -> Result<(), CliError> {
        self.write_advice_for_run(actions, Vec::new(), None)
    }

    /// Does the same as [`write_advice`](Self::write_advice), and adds `words` to commands that run tasks; those of `plan` name its file.
    pub(crate) fn write_advice_for_run(
        &self,
        actions: &mut Vec<Advised>,
        words: Vec<String>,
        plan: Option<PlanWords>,
    ) -> Result<(), CliError> {
        if self.place()?.location == Location::Memory {
            actions.clear();
        }
        let line = Arc::new(CommandLine { plan, ..self.command_line(words) });
        for action in actions {
            action.write_as(&line);
        }
        Ok(())
    }

    /// Returns the source of time and ids.
    pub(crate) fn source(&self) -> Result<Arc<dyn Source>, CliError> {
        // A fixed clock and counted ids, for tests of debug builds only. In a release build, a caller could move the
        // clock and so end the lease of another actor.
        let set = self.environment.text("TASKPAWL_TEST_NOW").filter(|_| cfg!(debug_assertions));
        let Some(now) = set else {
            return Ok(Arc::new(SystemSource));
        };
        let seed = self.environment.text("TASKPAWL_TEST_SEED").unwrap_or_default();
        let now: Option<Timestamp> = DateTime::parse_from_rfc3339(&now).ok().map(Into::into);
        let seed = if seed.is_empty() { Some(0) } else { seed.parse().ok() };
        match (now, seed) {
            (Some(now), Some(seed)) => Ok(Arc::new(FixedSource::new(now, seed))),
            _ => Err(CliError::usage("`TASKPAWL_TEST_NOW` is no time, or `TASKPAWL_TEST_SEED` no number")),
        }
    }

    /// Returns the tools that calls may name, with the origin of each.
    pub(crate) fn toolbox(&self) -> Result<&Toolbox, CliError> {
        Ok(self.shared_toolbox()?)
    }

    fn shared_toolbox(&self) -> Result<&Arc<Toolbox>, CliError> {
        get_or_try_init(&self.toolbox, || Toolbox::of(self).map(Arc::new))
    }

    /// Returns the lookup that explains tools which are not registered.
    pub(crate) fn absent_tools(&self) -> Result<Arc<dyn AbsentTools>, CliError> {
        let (toolbox, servers) = (Arc::clone(self.shared_toolbox()?), Arc::clone(self.shared_servers()?));
        Ok(Arc::new(Absent { toolbox, servers }))
    }

    /// Returns the to-do lists of models.
    pub(crate) fn lists(&self) -> Result<&Lists, CliError> {
        get_or_try_init(&self.lists, || Ok(todo_lists::builder(self)?.build()))
    }

    /// Ends the command: checklists of its calls are no longer drawn.
    pub(crate) fn end(&self) {
        if let Some(lists) = self.lists.get() {
            lists.end();
        }
    }

    /// Returns the MCP servers of the configuration and of the files of other programs.
    pub(crate) fn servers(&self) -> Result<&McpServers, CliError> {
        Ok(self.shared_servers()?)
    }

    fn shared_servers(&self) -> Result<&Arc<McpServers>, CliError> {
        get_or_try_init(&self.servers, || McpServers::of(self).map(Arc::new))
    }

    /// Returns the paths of the policy files, existing or not.
    pub(crate) fn policy_files(&self) -> PolicyFiles {
        let user = config::files(&self.environment).user.map(|file| file.with_file_name("policy.toml"));
        let root = self.root();
        PolicyFiles { ceiling: Some(CEILING.into()), user, project: Some(root.join(PROJECT_POLICY)) }
    }

    /// Returns the policy, which decides for each call: run, ask or deny.
    pub(crate) fn policy(&self) -> Result<&Policy, CliError> {
        get_or_try_init(&self.policy, || {
            let root = self.root();
            let policy = self.load_policy()?.in_directory(root);
            let harmless = todo_lists::tools(self)?.into_iter().map(|tool| tool.spec().name.clone());
            Ok(policy.with_harmless(harmless).confined_by(&self.config()?.sandbox()))
        })
    }

    fn load_policy(&self) -> Result<Policy, CliError> {
        let files = self.policy_files();
        match Policy::load(&files) {
            Err(error) if self.only_reads.get() => {
                // Unlike in `config`, the warning can be printed at once, because `out` does not need the policy.
                let rest = Policy::load(&PolicyFiles { project: None, ..files })?;
                let error = error.into();
                self.warn_of(&error);
                self.aside.borrow_mut().push(error);
                Ok(rest)
            }
            loaded => Ok(loaded?),
        }
    }

    /// Returns a builder of the store with everything but the built-in tools.
    pub(crate) fn builder(&self) -> Result<Builder, CliError> {
        let place = self.place()?;
        let builder = self.builder_at(place.location.clone(), &place.root)?;
        Ok(match &place.id {
            Some(id) => builder.project_id(id),
            None => builder,
        })
    }

    /// Returns a builder of a store at any location, with everything but the built-in tools. Tools work in `root`.
    pub(crate) fn builder_at(&self, location: Location, root: &Path) -> Result<Builder, CliError> {
        let builder = Taskpawl::builder_at(location)
            .root(root)
            .actor(&self.config()?.actor)
            .actor_kind(self.caller().kind())
            .host(self.environment.host())
            .origin(Origin::Cli)
            .sandbox(SandboxSettings::off())
            .http_access(self.config()?.http_access())
            .policy(self.policy()?.clone())
            .secrets(Arc::new(self.secrets(root, self.config()?.sandbox())?))
            .tool_finder(self.servers()?.finder())
            .source(self.source()?);
        // Commands that run nothing need the tools as well: recovery asks each tool if its calls may be repeated
        // after a crash.
        Ok(toolbox::usable(self)?.into_iter().fold(builder, Builder::tool))
    }

    /// Returns the store for a command that only reads.
    pub(crate) fn reader(&self) -> Result<&Taskpawl, CliError> {
        get_or_try_init(&self.plans, || {
            let plans = self.builder()?.without_builtin_tools().open()?;
            self.remark_on_store(&plans)?;
            Ok(plans)
        })
    }

    /// Returns the store for a command that writes, and records the current directory of a project that was moved.
    pub(crate) fn writer(&self) -> Result<&Taskpawl, CliError> {
        self.record_place()?;
        get_or_try_init(&self.plans, || Ok(self.builder()?.without_builtin_tools().open()?))
    }

    /// Returns the manager of the plan, for a command that writes.
    pub(crate) fn manager(&self) -> Result<&Manager, CliError> {
        Ok(self.writer()?.manager())
    }

    /// Returns the store with the built-in tools, for a command that runs them in the sandbox of `sandbox`. Records
    /// the current directory of a project that was moved.
    pub(crate) fn runner(&self, sandbox: &SandboxArgs) -> Result<Taskpawl, CliError> {
        self.record_place()?;
        self.warn_of_ignored(sandbox)?;
        let settings = sandbox.settings(self)?;
        audit::record_policy(self)?;
        self.ask_for_powers(&settings)?;
        self.tell_grants(&settings)?;
        let plans = self.onlooker(sandbox)?;
        self.check_isolation(&plans)?;
        Ok(plans)
    }

    /// Does the same as [`runner`](Self::runner), but records nothing and prints no warnings.
    pub(crate) fn onlooker(&self, sandbox: &SandboxArgs) -> Result<Taskpawl, CliError> {
        let plans = self.held(self.builder()?, sandbox)?.open()?;
        todo_lists::mirror(self.lists()?, &plans);
        Ok(plans)
    }

    /// Returns a builder with the sandbox of `sandbox`. Its programs cannot read the user's stores, and cannot change
    /// policy or configuration.
    pub(crate) fn held(&self, builder: Builder, sandbox: &SandboxArgs) -> Result<Builder, CliError> {
        let mut settings = sandbox.settings(self)?;
        self.check_wide(&settings)?;
        settings.remembered = grants::settings(&grants::in_force(self)?);
        // The policy does not ask again about accesses that the flags already granted.
        let policy = self.policy()?.clone().confined_by(&settings);
        let secrets = Arc::new(self.secrets(self.root(), settings.clone())?);
        let mut builder = builder.policy(policy).secrets(secrets).sandbox(settings);
        if let Some(store) = self.place().ok().and_then(|place| place.location.path()) {
            builder = builder.hidden_place(store);
        }
        if let Ok(state) = store::state_directory(&self.placement()) {
            builder = builder.own_directory(&state).hidden_place(state);
        }
        if let Some(directory) = config::files(&self.environment).user.as_deref().and_then(Path::parent) {
            builder = builder.own_directory(directory);
        }
        for path in config::places(&self.environment) {
            builder = builder.protected_place(path);
        }
        for path in self.granted()? {
            builder = builder.granted_place(path);
        }
        Ok(builder)
    }

    /// Refuses to run programs that could write the store file. Each commit replaces a JSON store with a new file, so
    /// a sandbox rule on the old file does not protect it. Only a rule on a directory does, as for `.taskpawl`.
    pub(crate) fn check_apart(&self, sandbox: &SandboxArgs) -> Result<(), CliError> {
        let settings = sandbox.settings(self)?;
        // Only a JSON store needs this check: the sandbox hides a database wherever it lies.
        let Location::Json(path) = self.place()?.location.resolved() else { return Ok(()) };
        if settings.mode == SandboxMode::Off || path.starts_with(real(self.root()).join(".taskpawl")) {
            return Ok(());
        }
        let reached = self.confinement(self.root(), settings)?.writable();
        let is_reached = reached.iter().any(|place| path.starts_with(real(place)));
        if is_reached { Err(CliError::StoreInReach { path }) } else { Ok(()) }
    }

    /// Warns of paths that the configuration names but the sandbox does not open: once for a run, not for each call.
    pub(crate) fn warn_of_ignored(&self, sandbox: &SandboxArgs) -> Result<(), CliError> {
        let confinement = self.confinement(self.root(), sandbox.settings(self)?)?;
        for ignored in confinement.ignored() {
            self.out().warn(&ignored);
        }
        Ok(())
    }

    /// Returns the secrets of a run. A secret's command is not taken from directories that programs may write under
    /// `settings`.
    fn secrets(&self, root: &Path, settings: SandboxSettings) -> Result<ConfiguredSecrets, CliError> {
        let writable = self.confinement(root, settings)?.writable();
        Ok(self.config()?.secrets(&self.environment).not_from(writable))
    }

    fn confinement(&self, root: &Path, settings: SandboxSettings) -> Result<Confinement, CliError> {
        let (variables, granted) = (self.environment.variables(), self.granted()?);
        let places = SandboxPlaces { root: root.to_owned(), variables, granted, ..SandboxPlaces::default() };
        Ok(Confinement::new(settings, places))
    }

    /// Returns the paths that the user's files let some programs write without asking: those of MCP servers and of
    /// policy rules.
    fn granted(&self) -> Result<Vec<PathBuf>, CliError> {
        let servers =
            self.config()?.mcp().servers().into_iter().flat_map(|server| server.sandbox.write.clone());
        Ok(self.policy()?.granted_to_write().map(PathBuf::from).chain(servers).collect())
    }

    /// Refuses a wider sandbox that a policy forbids.
    fn check_wide(&self, settings: &SandboxSettings) -> Result<(), CliError> {
        let policy = self.policy()?;
        let is_forbidden = |power: &Power| policy.ruling(*power).ruling == Ruling::Never;
        let forbidden = powers_of(settings).into_iter().find(is_forbidden);
        forbidden.map_or(Ok(()), |power| self.leave_to_person(power, power.as_str()))
    }

    /// Refuses a wider sandbox that a policy leaves to a person, unless the caller is one, and asks for the PIN if one is set.
    fn ask_for_powers(&self, settings: &SandboxSettings) -> Result<(), CliError> {
        let policy = self.policy()?;
        let asked = powers_of(settings).into_iter().find(|power| policy.ruling(*power).ruling == Ruling::Ask);
        asked.map_or(Ok(()), |power| self.leave_to_person(power, power.as_str()))
    }

    /// Refuses to run programs with less isolation than a policy demands.
    fn check_isolation(&self, plans: &Taskpawl) -> Result<(), CliError> {
        let Some((least, place)) = self.policy()?.least_level() else { return Ok(()) };
        let tried = plans.engine().probe_sandbox();
        let is_enough = matches!(&tried, Ok(Some(enforcement)) if enforcement.isolation() <= least);
        if is_enough {
            return Ok(());
        }
        let have = match tried {
            Ok(Some(enforcement)) => format!("level {}", enforcement.isolation().as_str()),
            Ok(None) => "no sandbox".to_owned(),
            Err(error) => error.to_string(),
        };
        let why = format!("{place} demands level {}, and this system has: {have}", least.as_str());
        Err(CliError::Forbidden { what: "run programs", why })
    }

    /// Says which remembered grants a run takes, records their use, and names what the project proposes beyond them.
    fn tell_grants(&self, settings: &SandboxSettings) -> Result<(), CliError> {
        if settings.mode == SandboxMode::Off {
            return Ok(());
        }
        let used = grants::in_force(self)?;
        if !used.is_empty() {
            self.leave_to_person(Power::Remembered, Power::Remembered.as_str())?;
            let texts: Vec<String> = used.iter().map(ToString::to_string).collect();
            self.out().remark(&format!("remembered grants: {}", texts.join(", ")));
            grants::record_use(self, &used)?;
        }
        let open = allow::open_proposals(self)?;
        if !open.is_empty() {
            let texts: Vec<String> = open.iter().map(ToString::to_string).collect();
            let said = format!("the project proposes {}: ", texts.join(", "));
            self.out().advise(&Hint::new(said).command("allow --proposed").text(" asks about it"));
        }
        Ok(())
    }

    /// Refuses the use of a power where a policy forbids it, or leaves it to a person and the caller is none.
    pub(crate) fn leave_to_person(&self, power: Power, by: &'static str) -> Result<(), CliError> {
        let PowerInForce { ruling, place, .. } = self.policy()?.ruling(power);
        match ruling {
            Ruling::Allow => Ok(()),
            Ruling::Ask => question::refuse_without_person(self, by),
            Ruling::Never => {
                let why = format!("{} forbids it", place.unwrap_or_default());
                Err(CliError::Forbidden { what: power.action(), why })
            }
        }
    }

    /// Remarks that the store does not exist yet, because a mistyped path would read as an empty store. Also prints
    /// the store's warnings.
    pub(crate) fn remark_on_store(&self, plans: &Taskpawl) -> Result<(), CliError> {
        let out = self.out();
        let location = &self.place()?.location;
        if location.path().is_some_and(|path| !path.exists()) {
            out.remark(&format!(
                "there is no store `{location}` yet; the first command that writes makes it"
            ));
        }
        for warning in plans.manager().store().warnings()? {
            out.warn(&warning);
        }
        Ok(())
    }
}

/// Returns the powers that the settings of a run use.
fn powers_of(settings: &SandboxSettings) -> Vec<Power> {
    let powers = [
        (settings.mode == SandboxMode::Off, Power::Off),
        (settings.net, Power::Net),
        (!settings.read.is_empty() || !settings.write.is_empty(), Power::Paths),
        (!settings.hosts.is_empty(), Power::Hosts),
        (!settings.ports.is_empty(), Power::Ports),
        (!settings.env.is_empty(), Power::Variables),
    ];
    powers.into_iter().filter(|(is_used, _)| *is_used).map(|(_, power)| power).collect()
}

// `OnceCell::get_or_try_init` is unstable in the standard library.
fn get_or_try_init<T>(
    cell: &OnceCell<T>,
    make: impl FnOnce() -> Result<T, CliError>,
) -> Result<&T, CliError> {
    if let Some(value) = cell.get() {
        return Ok(value);
    }
    let value = make()?;
    Ok(cell.get_or_init(|| value))
}
