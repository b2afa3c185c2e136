//! The parts of a worker that come from the configuration of its machine: tools, policy, sandbox and secrets. The program
//! `taskpawl-worker` is made of them.

use std::fs;
use std::path::{Path, PathBuf};

use taskpawl::store::{self, Location};
use taskpawl::tools::make_private_directories;
use taskpawl::{LocalExecutor, LocalOptions, Offer, Taskpawl};
use taskpawl_restate::Envelope;

use crate::app::App;
use crate::commands::sandbox::SandboxArgs;
use crate::environment::Environment;
use crate::error::CliError;
use crate::global::Global;

/// A worker whose calls do not run yet.
#[derive(Debug)]
pub struct WorkerHost {
    plans: Taskpawl,
    offer: Offer,
    remote: Option<String>,
}

/// The reason why a worker cannot start, as a message for people.
#[derive(Debug)]
pub struct WorkerError(String);

impl std::fmt::Display for WorkerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WorkerError {}

impl From<CliError> for WorkerError {
    fn from(error: CliError) -> Self {
        Self(error.message())
    }
}

impl WorkerHost {
    /// Reads the configuration, the policy and the tools for a project. `offer` gets the tools. `remote` replaces the git remote of the
    /// configuration, from which calls get their files.
    ///
    /// # Errors
    /// The configuration is invalid, or the sandbox cannot be enforced here.
    pub fn open(project: &Path, mut offer: Offer, remote: Option<String>) -> Result<Self, WorkerError> {
        let app = app().in_directory(project.to_owned());
        let root = fs::canonicalize(project)
            .map_err(|error| WorkerError(format!("failed to open `{}`: {error}", project.display())))?;
        let files = state(&app)?.join("workers").join(&offer.worker);
        let builder = app.builder_at(Location::Memory, &root)?.files(files);
        let plans = app.held(builder, &SandboxArgs::default())?.open().map_err(CliError::from)?;
        plans.engine().probe_sandbox().map_err(|error| WorkerError(error.to_string()))?;
        offer.tools = plans.engine().tools().names().map(str::to_owned).collect();
        let configured = app.config().map_err(WorkerError::from)?.restate().remote.clone();
        Ok(Self { plans, offer, remote: remote.or(configured) })
    }

    /// Starts to execute calls. Waits until the programs of an earlier worker of the same name are gone.
    ///
    /// # Errors
    /// The directory for output files is unusable.
    pub async fn start(self) -> Result<LocalExecutor, WorkerError> {
        let executor =
            LocalExecutor::open(self.plans.engine(), LocalOptions { offer: self.offer, remote: self.remote })
                .await;
        executor.map_err(|error| WorkerError(error.to_string()))
    }
}

/// Returns the public keys of the coordinators that workers on this machine trust.
///
/// # Errors
/// The file cannot be read.
pub fn trusted_keys() -> Result<Vec<String>, WorkerError> {
    let path = keys_path(&app())?;
    match fs::read_to_string(&path) {
        Ok(text) => {
            Ok(text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(WorkerError(format!("failed to read `{}`: {error}", path.display()))),
    }
}

/// Trusts the public key of a coordinator: workers of this user run the calls that it has signed.
///
/// # Errors
/// The text is no key, or the file cannot be written.
pub fn trust(key: &str) -> Result<(), WorkerError> {
    Envelope::check_key(key).map_err(|error| WorkerError(error.to_string()))?;
    let mut keys = trusted_keys()?;
    if keys.iter().any(|known| known == key) {
        return Ok(());
    }
    keys.push(key.to_owned());
    let path = keys_path(&app())?;
    let failed =
        |error: std::io::Error| WorkerError(format!("failed to write `{}`: {error}", path.display()));
    if let Some(directory) = path.parent() {
        make_private_directories(directory).map_err(failed)?;
    }
    // Renamed into place, so that a worker that starts meanwhile reads all keys or the old ones.
    let new = path.with_extension("new");
    fs::write(&new, keys.join("\n") + "\n").map_err(failed)?;
    fs::rename(&new, &path).map_err(failed)
}

fn app() -> App {
    App::new(Global::default(), Environment::read())
}

fn state(app: &App) -> Result<PathBuf, WorkerError> {
    Ok(store::state_directory(&app.placement()).map_err(CliError::from)?)
}

fn keys_path(app: &App) -> Result<PathBuf, WorkerError> {
    Ok(state(app)?.join("trusted-coordinators"))
}
