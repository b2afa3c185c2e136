//! Where a file of the project is, once every link on the way to it was followed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::CliError;

/// Where a name leads.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Spot {
    /// To a file of the project, which may have another name there.
    Inside { path: PathBuf, name: String },
    /// Out of it.
    Outside { path: PathBuf },
}

/// Follows the links on the way from the root to a file, which need not be there yet.
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
    // A link may lead to what is made by writing through it; one that leads to itself is refused above.
    match fs::read_link(path) {
        Ok(target) => behind_links(&above.join(target)),
        Err(_) => Ok(behind_links(above)?.join(name)),
    }
}
