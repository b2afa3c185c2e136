//! Reads files that configure taskpawl. A program may have replaced them by something that is not a regular file.

use std::fs::{File, FileType, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file for reading. A pipe is refused, since waiting for its writer could take forever.
///
/// # Errors
/// The file does not exist, cannot be read, or is not a regular file.
pub fn open_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let kind = match &opened {
        Ok(file) => file.metadata()?.file_type(),
        // A socket cannot be opened; its type gives a better error than that of the system.
        Err(_) => match path.metadata() {
            Ok(metadata) if metadata.file_type().is_socket() => metadata.file_type(),
            Ok(_) | Err(_) => return opened,
        },
    };
    if kind.is_file() {
        return opened;
    }
    let kind = name(kind);
    Err(invalid(format!("it is {kind}, not a file; replace it with a file, or remove it")))
}

/// Reads a text file of at most `most` bytes; `None` if nothing has this name.
///
/// # Errors
/// The file cannot be read, is not a regular file, or is a dangling link.
pub fn read_if_there(path: &Path, most: u64) -> io::Result<Option<String>> {
    let Some(bytes) = read_bytes_if_there(path, most)? else { return Ok(None) };
    let text = String::from_utf8(bytes).map_err(|_| invalid("it is not valid UTF-8".to_owned()))?;
    Ok(Some(text))
}

/// Reads a file of at most `most` bytes, which may not be text; `None` if nothing has this name.
///
/// # Errors
/// As for [`read_if_there`].
pub fn read_bytes_if_there(path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match open_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return not_dangling(path).map(|()| None),
        opened => opened?,
    };
    if file.metadata()?.len() > most {
        return Err(invalid(format!("it exceeds the limit of {most} bytes")));
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Refuses a missing path behind a dangling link: the author of the link meant an existing file, so that treating it as
/// absent would hide a mistake.
fn not_dangling(path: &Path) -> io::Result<()> {
    let last = path.ancestors().find(|above| above.symlink_metadata().is_ok());
    let Some(link) = last.filter(|last| !last.exists()) else { return Ok(()) };
    let to = link.read_link()?;
    let (link, to) = (link.display(), to.display());
    Err(invalid(format!("`{link}` is a link to `{to}`, which does not exist; create it, or remove the link")))
}

fn name(kind: FileType) -> &'static str {
    if kind.is_dir() {
        "a directory"
    } else if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

fn invalid(problem: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn anything_but_a_regular_file_is_refused_without_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("file"), "text").unwrap();
        std::fs::create_dir(at("directory")).unwrap();
        mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        symlink("file", at("link")).unwrap();
        symlink("gone", at("dangling")).unwrap();
        symlink("dangling", at("chain")).unwrap();
        let read = |name: &str| read_if_there(&at(name), 4).map_err(|error| error.to_string());
        for name in ["file", "link"] {
            assert_eq!(read(name), Ok(Some("text".to_owned())));
        }
        for name in ["none", "none/deeper", "directory/none"] {
            assert_eq!(read(name), Ok(None), "{name}");
        }
        for (name, says) in [
            ("directory", "it is a directory, not a file; replace it with a file, or remove it"),
            ("pipe", "it is a pipe, not a file;"),
            ("socket", "it is a socket, not a file;"),
            (
                "dangling",
                "/dangling` is a link to `gone`, which does not exist; create it, or remove the link",
            ),
            ("chain", "/chain` is a link to `dangling`, which does not exist"),
            ("dangling/deeper", "/dangling` is a link to `gone`"),
            ("file/deeper", "Not a directory"),
        ] {
            let error = read(name).unwrap_err();
            assert!(error.contains(says), "{name}: {error}");
        }
        assert!(
            read_if_there(&at("file"), 3).unwrap_err().to_string().contains("exceeds the limit of 3 bytes")
        );
    }
}
