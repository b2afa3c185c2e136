//! Reading and replacing of files that people edit, too. A program may have replaced such a file, for example by a
//! pipe, so only regular files are opened.

use std::fs;
use std::io::{self, Read, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use taskpawl::tools::open_file;

/// Reads a file as bytes.
pub(crate) fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_file(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file as text.
pub(crate) fn read_file(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open_file(path)?.read_to_string(&mut text)?;
    Ok(text)
}

/// Replaces a file atomically and keeps its mode: a crash leaves the old or the new content, never a part. Creates the
/// directory if necessary.
pub(crate) fn replace_file(path: &Path, text: &str) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    // Created in the same directory, because a rename cannot cross file systems.
    let mut file = tempfile::Builder::new().prefix(".taskpawl-").tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    // Temporary files get 0600, but others who work on the project must be able to read a new file.
    let usual = || fs::Permissions::from_mode(0o644);
    let permissions = fs::metadata(path).map_or_else(|_| usual(), |data| data.permissions());
    file.as_file().set_permissions(permissions)?;
    // Without the sync, a crash after the rename could leave an empty file.
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
