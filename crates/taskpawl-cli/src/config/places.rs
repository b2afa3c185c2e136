//! The places of configuration files.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::environment::Environment;

/// The maximum size of a configuration file.
pub(super) const MAX_BYTES: u64 = 1 << 20;

/// The paths of the configuration files. The project's file exists; the user's may not.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Files {
    pub(crate) project: Option<PathBuf>,
    pub(crate) user: Option<PathBuf>,
}

/// Returns the paths of the configuration files: the nearest `taskpawl.toml` upwards, and that of the user.
pub(crate) fn files(environment: &Environment) -> Files {
    let project = environment.directory.ancestors().map(|above| above.join("taskpawl.toml"));
    let home = || environment.path("HOME").map(|home| home.join(".config"));
    // The XDG specification says that a relative path has to be ignored.
    let base = environment.path("XDG_CONFIG_HOME").filter(|path| path.is_absolute()).or_else(home);
    Files {
        // A broken link counts as well: its error is reported, instead of silently using a file further up.
        project: project.into_iter().find(|path| path.symlink_metadata().is_ok()),
        user: base.map(|base| base.join("taskpawl").join("config.toml")),
    }
}

/// Returns the configuration paths that govern programs. The sandbox keeps programs from changing them.
pub(crate) fn places(environment: &Environment) -> Vec<PathBuf> {
    let Files { project, user } = files(environment);
    let of_user = user.and_then(|path| path.parent().map(Path::to_owned));
    project.into_iter().chain(of_user).chain([PathBuf::from("/etc/taskpawl")]).collect()
}
