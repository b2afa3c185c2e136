//! The tools and the store of a command; each is opened when the command first needs it.

use std::cell::{Cell, OnceCell};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use taskpawl::model::advice::Hint;
use taskpawl::model::rules::AbsentTools;
use taskpawl::model::task::Origin;
use taskpawl::store::{self, Location};
use taskpawl::tools::{
    ConfiguredSecrets, Confinement, Policy, Power, RememberedGrant, Ruling, SandboxPlaces, is_in_sandbox,
};
use taskpawl::{Builder, Manager, RememberedGrants, SandboxMode, SandboxSettings, Taskpawl};

use crate::audit;
use crate::commands::sandbox::SandboxArgs;
use crate::config;
use crate::context::{Context, get_or_try_init};
use crate::environment::Environment;
use crate::error::CliError;
use crate::global::Global;
use crate::grants;
use crate::kits;
use crate::person;
use crate::remembered::{self, Approval};
use crate::servers::McpServers;
use crate::text::clean;
use crate::todo_lists;
use crate::toolbox::{self, Absent, Toolbox};
use crate::trust::real;

/// The tools and the store of one command, beside its context.
#[derive(Debug)]
pub(crate) struct App {
    context: Context,
    plans: OnceCell<Taskpawl>,
    toolbox: OnceCell<Arc<Toolbox>>,
    servers: OnceCell<Arc<McpServers>>,
    /// The policy with the approvals that a person has remembered.
    policy_of_calls: OnceCell<Policy>,
    /// True if the command runs tool calls.
    runs: Cell<bool>,
}

/// An app is its context with more: each command takes one argument and uses both. Modules that need no tools and no store take the
/// [`Context`], so that they do not depend on those that open them.
impl Deref for App {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

impl App {
    /// Returns an app that has not opened or read anything yet.
    pub(crate) fn new(global: Global, environment: Environment) -> Self {
        Self::of(Context::new(global, environment))
    }

    fn of(context: Context) -> Self {
        let (plans, toolbox, servers, policy_of_calls, runs) = Default::default();
        Self { context, plans, toolbox, servers, policy_of_calls, runs }
    }

    /// Returns the policy that decides about calls, with the approvals that a person has remembered.
    pub(crate) fn policy_of_calls(&self) -> Result<&Policy, CliError> {
        get_or_try_init(&self.policy_of_calls, || {
            let remembered = remembered::in_force(self)?;
            Ok(self.policy()?.clone().with_remembered(remembered.iter().map(Approval::rule).collect()))
        })
    }

    /// Ends the command: checklists of its calls are no longer drawn, and the remembered approvals that a run has used are recorded.
    pub(crate) fn end(&self) {
        self.context.end();
        let policy = self.policy_of_calls.get().filter(|_| self.runs.get());
        let used = policy.map(Policy::used_approvals).unwrap_or_default();
        if let Err(error) = remembered::record_use(self, &used) {
            self.out().warn(&error.message());
        }
    }

    /// Returns an app for the project of another directory; it has not opened or read anything yet.
    pub(crate) fn in_directory(&self, directory: PathBuf) -> Self {
        Self::of(self.context.in_directory(directory))
    }

    /// Returns the tools that calls may name, with the origin of each.
    pub(crate) fn toolbox(&self) -> Result<&Toolbox, CliError> {
        Ok(self.shared_toolbox()?)
    }

    fn shared_toolbox(&self) -> Result<&Arc<Toolbox>, CliError> {
        get_or_try_init(&self.toolbox, || Toolbox::of(self, self.servers()?).map(Arc::new))
    }

    /// Returns the lookup that explains tools which are not registered.
    pub(crate) fn absent_tools(&self) -> Result<Arc<dyn AbsentTools>, CliError> {
        let (toolbox, servers) = (Arc::clone(self.shared_toolbox()?), Arc::clone(self.shared_servers()?));
        Ok(Arc::new(Absent { toolbox, servers }))
    }

    /// Returns the MCP servers of the configuration and of the files of other programs.
    pub(crate) fn servers(&self) -> Result<&McpServers, CliError> {
        Ok(self.shared_servers()?)
    }

    fn shared_servers(&self) -> Result<&Arc<McpServers>, CliError> {
        get_or_try_init(&self.servers, || McpServers::of(self).map(Arc::new))
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
            .host(self.environment().host())
            .origin(Origin::Cli)
            .sandbox(SandboxSettings::off())
            .http_access(self.config()?.http_access())
            .policy(self.policy_of_calls()?.clone())
            .secrets(Arc::new(self.secrets(root, self.config()?.sandbox())?))
            .tool_finder(self.servers()?.finder())
            .source(self.source()?);
        let builder = match store::state_directory(&self.placement()) {
            // Beside the directory of the stores, which programs cannot see.
            Ok(state) => builder.artifacts(state.with_file_name("taskpawl-artifacts")),
            Err(_) => builder,
        };
        // Commands that run nothing need the tools as well: recovery asks each tool if its calls may be repeated
        // after a crash.
        Ok(toolbox::usable(self, self.servers()?)?.into_iter().fold(builder, Builder::tool))
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
        self.runs.set(true);
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
        let remembered = self.remembered()?;
        self.held_with(builder, SandboxSettings { remembered, ..sandbox.settings(self)? })
    }

    fn remembered(&self) -> Result<Vec<RememberedGrant>, CliError> {
        let mut grants = grants::settings(&grants::in_force(self)?);
        grants.extend(kits::grants(self)?);
        Ok(grants)
    }

    /// Returns the grants that runs of this project have without a flag, for advice. Runs report a file of grants that is invalid;
    /// commands that only read go on without it.
    pub(crate) fn remembered_grants(&self) -> RememberedGrants {
        RememberedGrants::new(self.remembered().unwrap_or_default())
    }

    /// Returns a builder like [`held`](Self::held), with the sandbox of `settings`.
    pub(crate) fn held_with(&self, builder: Builder, settings: SandboxSettings) -> Result<Builder, CliError> {
        self.check_wide(&settings)?;
        // The policy does not ask again about accesses that the flags already granted.
        let policy = self.policy_of_calls()?.clone().confined_by(&settings);
        let secrets = Arc::new(self.secrets(self.root(), settings.clone())?);
        let mut builder = builder.policy(policy).secrets(secrets).sandbox(settings);
        if let Some(store) = self.place().ok().and_then(|place| place.location.path()) {
            builder = builder.hidden_place(store);
        }
        if let Ok(state) = store::state_directory(&self.placement()) {
            // Beside the directory of the stores, which programs cannot see.
            builder = builder.worktrees(state.with_file_name("taskpawl-worktrees"));
            builder = builder.own_directory(&state).hidden_place(state);
        }
        if let Some(directory) = config::files(self.environment()).user.as_deref().and_then(Path::parent) {
            builder = builder.own_directory(directory);
        }
        for path in config::places(self.environment()) {
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
    pub(crate) fn secrets(
        &self,
        root: &Path,
        settings: SandboxSettings,
    ) -> Result<ConfiguredSecrets, CliError> {
        let writable = self.confinement(root, settings)?.writable();
        Ok(self.config()?.secrets(self.environment()).not_from(writable))
    }

    fn confinement(&self, root: &Path, settings: SandboxSettings) -> Result<Confinement, CliError> {
        let (variables, granted) = (self.environment().variables(), self.granted()?);
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
        forbidden.map_or(Ok(()), |power| person::check_power(self, power, power.as_str()))
    }

    /// Refuses a wider sandbox that a policy leaves to a person, unless the caller is one, and asks for the PIN if one is set.
    fn ask_for_powers(&self, settings: &SandboxSettings) -> Result<(), CliError> {
        let policy = self.policy()?;
        let asked = powers_of(settings).into_iter().find(|power| policy.ruling(*power).ruling == Ruling::Ask);
        asked.map_or(Ok(()), |power| person::check_power(self, power, power.as_str()))
    }

    /// Refuses to run programs with less isolation than a policy demands.
    fn check_isolation(&self, plans: &Taskpawl) -> Result<(), CliError> {
        let Some((least, place)) = self.policy()?.least_level() else { return Ok(()) };
        // The policy has judged the sandbox around this one, on which programs rely.
        if is_in_sandbox() {
            return Ok(());
        }
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
            person::check_power(self, Power::Remembered, Power::Remembered.as_str())?;
            let texts: Vec<String> = used.iter().map(ToString::to_string).collect();
            self.out().remark(&format!("remembered grants: {}", texts.join(", ")));
            grants::record_use(self, &used)?;
        }
        let approvals = remembered::in_force(self)?;
        if !approvals.is_empty() {
            person::check_power(self, Power::Remembered, Power::Remembered.as_str())?;
            person::check_power(self, Power::Approvals, Power::Approvals.as_str())?;
        }
        for (program, approval) in remembered::outdated(self)? {
            self.out().remark(&format!(
                "the remembered approval of `{}` does not count: `{}` has changed",
                clean(&approval.call),
                clean(&program)
            ));
        }
        let open = grants::open_proposals(self)?;
        if !open.is_empty() {
            let texts: Vec<String> = open.iter().map(ToString::to_string).collect();
            let said = format!("the project proposes {}: ", texts.join(", "));
            self.out().advise(&Hint::new(said).command("allow --proposed").text(" asks about it"));
        }
        Ok(())
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
