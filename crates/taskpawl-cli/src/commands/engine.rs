//! The flags of runs whose calls leave this machine, and the connection to their engine.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use taskpawl::store;
use taskpawl::tools::{Power, make_private_directories};
use taskpawl::{CallExecutor, Observer, RunEvent};
use taskpawl_restate::{KeyError, Notice, RestateExecutor, RestateOptions, SigningKey};

use crate::app::App;
use crate::commands::files_consent;
use crate::commands::parse;
use crate::config::{FilesWord, RestateConfig};
use crate::context::Context;
use crate::error::CliError;
use crate::person;

/// The default addresses of a server on this machine, and the default pool.
const URL: &str = "http://127.0.0.1:8080";
const ADMIN: &str = "http://127.0.0.1:9070";
const POOL: &str = "default";

/// The default number of calls that the engine has at once.
const WINDOW: usize = 256;

/// The default time for which a run waits for a silent server.
const PATIENCE: Duration = Duration::from_mins(10);

/// Flags of runs whose calls leave this machine.
#[derive(Debug, Clone, Default, clap::Args)]
#[expect(clippy::doc_markdown, reason = "the comments are help texts")]
#[command(next_help_heading = "Calls on other machines")]
pub(crate) struct EngineArgs {
    /// Run calls on the workers of a Restate server; `taskpawl workers` lists them
    #[arg(long, value_name = "ENGINE", value_enum)]
    engine: Option<EngineWord>,
    /// Address of its ingress [default: http://127.0.0.1:8080]
    #[arg(long, value_name = "URL", requires = "engine")]
    restate_url: Option<String>,
    /// Address of its admin interface [default: http://127.0.0.1:9070]
    #[arg(long, value_name = "URL", requires = "engine")]
    restate_admin: Option<String>,
    /// The pool of workers [default: default]
    #[arg(long, value_name = "NAME", requires = "engine")]
    pool: Option<String>,
    /// Hand at most so many calls to the engine at once, up to 1000 [default: 256]
    #[arg(long, value_name = "N", requires = "engine", value_parser = parse::at_least_one::<usize>)]
    window: Option<usize>,
    /// Wait so long for an engine that does not answer, then end with exit code 4 [default: 10m]
    #[arg(long, value_name = "DURATION", requires = "engine", value_parser = parse::duration)]
    engine_patience: Option<Duration>,
    /// The way of the project's files to workers [default: shared]
    #[arg(long, value_name = "WAY", requires = "engine", value_enum)]
    files: Option<FilesWord>,
    /// Push the files of the project to the remote without asking the first time
    #[arg(long, requires = "engine")]
    send_files: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EngineWord {
    /// A Restate server
    Restate,
}

impl EngineArgs {
    /// Returns whether calls leave this machine.
    pub(crate) fn is_on(&self) -> bool {
        self.engine.is_some()
    }

    /// Returns these options as words of a command line.
    pub(crate) fn words(&self) -> Vec<String> {
        let patience = self.engine_patience.map(|time| taskpawl::model::value::Period(time).to_string());
        let options = [
            ("--engine", self.engine.map(|_| "restate".to_owned())),
            ("--restate-url", self.restate_url.clone()),
            ("--restate-admin", self.restate_admin.clone()),
            ("--pool", self.pool.clone()),
            ("--window", self.window.map(|window| window.to_string())),
            ("--engine-patience", patience),
            (
                "--files",
                self.files.map(|files| if files == FilesWord::Git { "git" } else { "shared" }.to_owned()),
            ),
        ];
        options.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?])).flatten().collect()
    }

    /// Connects to the engine; `None` if all calls run here.
    pub(crate) async fn connect(
        &self,
        app: &App,
        observer: Option<Arc<dyn Observer>>,
    ) -> Result<Option<Arc<dyn CallExecutor>>, CliError> {
        if !self.is_on() {
            return Ok(None);
        }
        person::check_power(app, Power::Engine, "engine")?;
        let RestateConfig { url, admin, pool, window, patience, .. } = app.config()?.restate().clone();
        let admin = self.restate_admin.clone().or(admin).unwrap_or_else(|| ADMIN.to_owned());
        let notice = Notice::new(move |message| {
            if let Some(observer) = &observer {
                observer.event(&RunEvent::Warning { message });
            }
        });
        let options = RestateOptions {
            ingress: self.restate_url.clone().or(url).unwrap_or_else(|| URL.to_owned()),
            admin,
            pool: self.pool.clone().or(pool).unwrap_or_else(|| POOL.to_owned()),
            window: self.window.or(window).unwrap_or(WINDOW),
            patience: self.engine_patience.or(patience).unwrap_or(PATIENCE),
            key: signing_key(app)?,
            notice,
        };
        let executor = RestateExecutor::connect(options).await;
        Ok(Some(executor.map_err(|source| CliError::Engine { source })?))
    }
}

impl EngineArgs {
    /// Returns the remote through which calls get the files of the project; `None` if workers have them. The first time the user is
    /// asked.
    pub(crate) fn files_remote(&self, app: &App) -> Result<Option<String>, CliError> {
        if !self.is_on() {
            return Ok(None);
        }
        let RestateConfig { files, remote, .. } = app.config()?.restate().clone();
        if self.files.or(files).unwrap_or_default() == FilesWord::Shared {
            return Ok(None);
        }
        let remote = remote.ok_or_else(|| {
            let hint = "name it in your configuration: `[engines.restate]` with `remote = \"URL\"`";
            CliError::usage_with("`--files git` needs a remote", hint)
        })?;
        files_consent::check(app, &remote, self.send_files)?;
        Ok(Some(remote))
    }
}

/// Returns the address of the admin interface.
pub(crate) fn admin(app: &App, given: Option<&String>) -> Result<String, CliError> {
    let configured = app.config()?.restate().admin.clone();
    Ok(given.cloned().or(configured).unwrap_or_else(|| ADMIN.to_owned()))
}

/// Returns the key that signs the calls of this user; the first use makes it.
pub(crate) fn signing_key(context: &Context) -> Result<SigningKey, CliError> {
    let path = key_path(context)?;
    let failed = |action, source| CliError::File { action, path: path.clone(), source };
    let read = |bytes: &[u8]| SigningKey::read(bytes).map_err(|error| broken(&path, &error));
    match fs::read(&path) {
        Ok(bytes) => return read(&bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed("read", error)),
    }
    let bytes = SigningKey::generate().map_err(|error| broken(&path, &error))?;
    if let Some(directory) = path.parent() {
        make_private_directories(directory).map_err(|error| failed("create", error))?;
    }
    let new = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    match new.and_then(|mut file| file.write_all(&bytes)) {
        Ok(()) => read(&bytes),
        // Two first runs at once: the one that loses reads the key of the other.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            read(&fs::read(&path).map_err(|error| failed("read", error))?)
        }
        Err(error) => Err(failed("write", error)),
    }
}

fn broken(path: &Path, error: &KeyError) -> CliError {
    let hint = "remove the file: the next run makes a new key, which workers have to trust";
    CliError::usage_with(format!("failed to read `{}`: {error}", path.display()), hint)
}

fn key_path(context: &Context) -> Result<PathBuf, CliError> {
    Ok(store::state_directory(&context.placement())?.join("coordinator.key"))
}
