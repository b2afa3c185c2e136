//! The surroundings of one command: flags, environment, configuration, policy and the place of the store. Each part is read when it is
//! first needed; nothing here opens the store or starts a program.

mod place;

use std::cell::{Cell, OnceCell, RefCell};
use std::path::PathBuf;
use std::sync::Arc;

use chrono::DateTime;
use taskpawl::model::advice::{Advised, CommandLine, PlanWords};
use taskpawl::model::value::Timestamp;
use taskpawl::store::{Location, StorePlacement};
use taskpawl::tools::{CEILING, Policy, PolicyFiles, Power, PowerInForce};
use taskpawl::{FixedSource, Source, SystemSource};
use taskpawl_todo::Lists;

pub(crate) use place::made_text;

use crate::caller::Caller;
use crate::config::{self, ColorWord, Config, Key};
use crate::environment::{Environment, Terminal};
use taskpawl::store::PlacementError;

use crate::error::CliError;
use crate::global::Global;
use crate::output::Output;
use crate::text::Paint;
use crate::todo_lists;

/// The file name of a project's policy, which lies at the root of the project.
pub(crate) const PROJECT_POLICY: &str = "taskpawl-policy.toml";

/// The surroundings of one command.
#[derive(Debug)]
pub(crate) struct Context {
    global: Global,
    environment: Environment,
    caller: OnceCell<Caller>,
    config: OnceCell<Config>,
    place: OnceCell<StorePlacement>,
    policy: OnceCell<Policy>,
    lists: OnceCell<Lists>,
    /// True if the command neither runs tool calls nor changes the plan.
    only_reads: Cell<bool>,
    /// The errors of project files that a reading command ignored.
    aside: RefCell<Vec<CliError>>,
}

impl Context {
    /// Returns a context that has not read anything yet.
    pub(crate) fn new(global: Global, environment: Environment) -> Self {
        let (caller, config, place, policy, lists) = Default::default();
        let (only_reads, aside) = Default::default();
        Self { global, environment, caller, config, place, policy, lists, only_reads, aside }
    }

    /// Returns the context of the project of another directory; it has not read anything yet.
    pub(crate) fn in_directory(&self, directory: PathBuf) -> Self {
        Self::new(self.global.clone(), self.environment.in_directory(directory))
    }

    /// Returns whether a task started the caller.
    pub(crate) fn was_started_by_task(&self) -> bool {
        // A program can clear its environment, but it cannot change its ancestors.
        self.environment.text("TASKPAWL_TASK").is_some() || taskpawl::is_below_supervisor()
    }

    /// Makes the command ignore an invalid project configuration with a warning. Only for commands that run and change
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
            Caller::find(&self.environment, self.was_started_by_task(), self.global.actor.is_some())
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
        match self.place() {
            Ok(place) if place.location == Location::Memory => actions.clear(),
            // Without a project the run makes one.
            Ok(_) | Err(CliError::Placement(PlacementError::NoProject { .. })) => {}
            Err(other) => return Err(other),
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

    /// Returns the to-do lists of models.
    pub(crate) fn lists(&self) -> Result<&Lists, CliError> {
        get_or_try_init(&self.lists, || Ok(todo_lists::builder(self)?.build()))
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

    /// Returns the ruling of the policy files on a power. Unlike [`policy`](Self::policy) it needs no valid configuration.
    pub(crate) fn ruling(&self, power: Power) -> Result<PowerInForce, CliError> {
        match self.policy.get() {
            Some(policy) => Ok(policy.ruling(power)),
            None => Ok(self.load_policy()?.ruling(power)),
        }
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

    /// Ends the command: checklists of its calls are no longer drawn.
    pub(crate) fn end(&self) {
        if let Some(lists) = self.lists.get() {
            lists.end();
        }
    }
}

/// Returns the value of a cell, which is made on the first call.
// `OnceCell::get_or_try_init` is unstable in the standard library.
pub(crate) fn get_or_try_init<T>(
    cell: &OnceCell<T>,
    make: impl FnOnce() -> Result<T, CliError>,
) -> Result<&T, CliError> {
    if let Some(value) = cell.get() {
        return Ok(value);
    }
    let value = make()?;
    Ok(cell.get_or_init(|| value))
}
