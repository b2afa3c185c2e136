//! Reading of project files. A program may have replaced such a file, for example by a pipe, so only regular files
//! are opened.

use std::io::{self, Read};
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
