//! Reading and replacing of files that people edit, too. A program may have replaced such a file, for example by a
//! pipe, so only regular files are read. Outputs that a command line names may be pipes and devices.

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

/// Writes a text to the path that a command line names. A regular file is replaced, also behind a link; a pipe or a device is written
/// to: replacing `/dev/stdout` would take it from every other program.
pub(crate) fn write_output(path: &Path, text: &str) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(data) if data.is_file() => replace_file(&fs::canonicalize(path)?, text),
        Ok(_) => fs::OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes()),
        Err(_) if path.is_symlink() => Err(io::Error::other("it is a link that leads nowhere")),
        Err(_) => replace_file(path, text),
    }
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt as _, symlink};

    use super::*;

    #[test]
    fn outputs_reach_pipes_and_links_instead_of_replacing_them() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("real"), "old").unwrap();
        symlink("real", at("link")).unwrap();
        write_output(&at("link"), "new").unwrap();
        assert!(at("link").is_symlink() && fs::read_to_string(at("real")).unwrap() == "new");
        write_output(&at("fresh"), "text").unwrap();
        assert_eq!(fs::read_to_string(at("fresh")).unwrap(), "text");
        symlink("nowhere", at("loose")).unwrap();
        assert!(write_output(&at("loose"), "").is_err() && !at("nowhere").exists());
        let pipe = at("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from(0o600)).unwrap();
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).unwrap()
        });
        write_output(&pipe, "through").unwrap();
        assert_eq!(reader.join().unwrap(), "through");
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
    }
}
