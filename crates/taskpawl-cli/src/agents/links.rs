//! Resolution of links on the path to a file of the project.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::CliError;

/// The target of a name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Spot {
    /// A path in the project, possibly with another name.
    Inside { path: PathBuf, name: String },
    /// A path outside of the project.
    Outside { path: PathBuf },
}

/// Follows the links on the way from the root to a file, which may be missing.
pub(super) fn spot(root: &Path, name: &str) -> Result<Spot, CliError> {
    let path = root.join(name);
    let found = fs::canonicalize(root).and_then(|root| Ok((behind_links(&path)?, root)));
    let (path, root) = found.map_err(|source| CliError::File { action: "read", path, source })?;
    Ok(match path.strip_prefix(&root).map(|name| name.display().to_string()) {
        Ok(name) => Spot::Inside { path, name },
        Err(_) => Spot::Outside { path },
    })
}

fn behind_links(path: &Path) -> io::Result<PathBuf> {
    let missing = match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => error,
        known => return known,
    };
    let Some((above, name)) = path.parent().zip(path.file_name()) else { return Err(missing) };
    // A dangling link is followed, because a write through it would create its target. A link that leads to itself
    // has already failed above.
    match fs::read_link(path) {
        Ok(target) => behind_links(&above.join(target)),
        Err(_) => Ok(behind_links(above)?.join(name)),
    }
}
