//! Fingerprint of everything that the success of a task with `cache` depends on: its work, and the contents of its
//! files.

use std::fs::{self, Metadata};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use sha2::{Digest, Sha256};
use taskpawl_model::command::CacheInputs;
use taskpawl_model::value::paths;
use taskpawl_tools::{ScanBounds, open_file};

/// Limits for the number of files and the depth. Symbolic links can make a few directories appear as many.
const ENTRIES: usize = 1_000_000;
const DEPTH: usize = 1_000;

/// Mask of the file type in a mode, `S_IFMT`.
const KIND: u32 = 0o170_000;

/// Returns the fingerprint of a task in the project at `root`. Returns `None` if a file could not be read, a file
/// changed meanwhile or the scan reached its bounds; nothing may be concluded then. Blocks.
pub(crate) fn fingerprint(root: &Path, inputs: &CacheInputs, bounds: &ScanBounds) -> Option<String> {
    let mut hash = Sha256::new();
    let mut patterns: Vec<&String> = inputs.files.iter().collect();
    patterns.sort();
    let excluded: Vec<Pattern> =
        patterns.iter().filter_map(|text| text.strip_prefix('!')).map(Pattern::of).collect::<Option<_>>()?;
    for text in patterns {
        add_text(&mut hash, text.as_bytes());
        if text.starts_with('!') {
            continue;
        }
        let mut files = matching(root, &Pattern::of(text)?, bounds).ok()?;
        files.retain(|path| !excluded.iter().any(|pattern| pattern.is_about(path)));
        hash.update((files.len() as u64).to_le_bytes());
        for path in files {
            add_text(&mut hash, path.as_os_str().as_bytes());
            hash.update(content(&root.join(path), bounds).ok()??);
        }
    }
    Some(format!("{}.{:x}", inputs.work, hash.finalize()))
}

// The length prefix keeps the names `ab`, `c` apart from `a`, `bc`.
fn add_text(hash: &mut Sha256, text: &[u8]) {
    hash.update((text.len() as u64).to_le_bytes());
    hash.update(text);
}

/// A glob for files below the project root.
struct Pattern {
    text: String,
    glob: GlobMatcher,
}

impl Pattern {
    /// Returns `None` for an invalid pattern, or one that leads out of the project.
    fn of(text: impl AsRef<str>) -> Option<Self> {
        let text = paths::beneath(text.as_ref())?;
        let glob = GlobBuilder::new(&text).literal_separator(true).build().ok()?;
        Some(Self { glob: glob.compile_matcher(), text })
    }

    /// Returns whether the pattern matches the path or one of its parent directories.
    fn is_about(&self, path: &Path) -> bool {
        self.glob.is_match(path) || path.starts_with(&self.text)
    }
}

/// Returns the files that a pattern matches, sorted. A directory matches with everything below it.
fn matching(root: &Path, pattern: &Pattern, bounds: &ScanBounds) -> io::Result<Vec<PathBuf>> {
    // The walk starts at the fixed prefix of the pattern, so that `src/**` does not read the whole project.
    let start = PathBuf::from(paths::written(std::slice::from_ref(&pattern.text)).pop().unwrap_or_default());
    match fs::symlink_metadata(root.join(&start)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        found => {
            found?;
        }
    }
    let mut walk = Walk {
        root,
        real: root.canonicalize()?,
        bounds,
        above: Vec::new(),
        left: ENTRIES,
        found: Vec::new(),
    };
    walk.visit(&start)?;
    walk.found.retain(|path| pattern.is_about(path));
    walk.found.sort();
    Ok(walk.found)
}

/// A walk over the files of a project. Symbolic links to directories inside the project are followed, because patterns
/// may name files through them. All other links are leaves, represented by their target.
struct Walk<'a> {
    root: &'a Path,
    real: PathBuf,
    bounds: &'a ScanBounds,
    /// The open directories by device and inode. A link back to one of them would make the walk endless.
    above: Vec<(u64, u64)>,
    left: usize,
    found: Vec<PathBuf>,
}

impl Walk<'_> {
    fn visit(&mut self, path: &Path) -> io::Result<()> {
        self.bounds.check()?;
        self.left = self.left.checked_sub(1).ok_or_else(|| io::Error::other("there are too many files"))?;
        let Some(directory) = self.directory(path)? else {
            self.found.push(path.to_owned());
            return Ok(());
        };
        let id = (directory.dev(), directory.ino());
        if self.above.contains(&id) || self.above.len() > DEPTH {
            // A link to a directory that is being visited, or one that is too deep, becomes a leaf: the fingerprint
            // still depends on it.
            self.found.push(path.to_owned());
            return Ok(());
        }
        self.above.push(id);
        for entry in fs::read_dir(self.root.join(path))? {
            let name = entry?.file_name();
            if name != ".git" {
                self.visit(&path.join(name))?;
            }
        }
        self.above.pop();
        Ok(())
    }

    /// Returns the metadata of a directory, also if `path` is a link to a directory inside the project; `None` for
    /// everything else.
    fn directory(&self, path: &Path) -> io::Result<Option<Metadata>> {
        let path = self.root.join(path);
        let metadata = fs::symlink_metadata(&path)?;
        if !metadata.is_symlink() {
            return Ok(Some(metadata).filter(Metadata::is_dir));
        }
        // Links out of the project and into `.git` are leaves: only their target is hashed.
        let real = path.canonicalize().ok().filter(|real| real.starts_with(&self.real));
        let is_of_git = |real: &PathBuf| real.components().any(|part| part.as_os_str() == ".git");
        let real = real.filter(|real| !is_of_git(real));
        Ok(real.and_then(|real| fs::metadata(real).ok()).filter(Metadata::is_dir))
    }
}

/// Returns the SHA-256 of the contents of a file, of the target of a link that leads to no regular file, or of the type
/// of a special file. Returns `None` if the file changed meanwhile. Special files are never opened: opening a pipe may
/// block, and opening a device may have effects.
fn content(path: &Path, bounds: &ScanBounds) -> io::Result<Option<Vec<u8>>> {
    bounds.check()?;
    let mut hash = Sha256::new();
    if !fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        let metadata = fs::symlink_metadata(path)?;
        if metadata.is_symlink() {
            hash.update(fs::read_link(path)?.as_os_str().as_bytes());
        } else {
            hash.update((metadata.mode() & KIND).to_le_bytes());
        }
        return Ok(Some(hash.finalize().to_vec()));
    }
    // The file may have been replaced since the check above. `open_file` fails for special files instead of blocking.
    let mut file = open_file(path)?;
    let before = file.metadata()?;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        bounds.check()?;
        match file.read(&mut buffer)? {
            0 => break,
            count => hash.update(&buffer[..count]),
        }
    }
    // By path, not by descriptor: this also detects that the file was replaced by another one.
    let after = fs::metadata(path)?;
    Ok((stamp(&before) == stamp(&after)).then(|| hash.finalize().to_vec()))
}

fn stamp(metadata: &Metadata) -> [i64; 6] {
    let (inode, bytes) = (metadata.ino().cast_signed(), metadata.len().cast_signed());
    let (modified, changed) = (metadata.mtime(), metadata.ctime());
    [inode, bytes, modified, metadata.mtime_nsec(), changed, metadata.ctime_nsec()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(files: &[&str]) -> CacheInputs {
        let files = files.iter().map(|file| (*file).to_owned()).collect();
        CacheInputs { work: "work".to_owned(), files, recorded: None }
    }

    fn matched(root: &Path, pattern: &str) -> Vec<PathBuf> {
        matching(root, &Pattern::of(pattern).unwrap(), &ScanBounds::default()).unwrap()
    }

    #[test]
    fn fingerprint_depends_on_contents_and_names_but_not_on_times() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        fs::create_dir(path("src")).unwrap();
        fs::write(path("src/a.rs"), "a").unwrap();
        fs::write(path("src/b.txt"), "b").unwrap();
        let of = |files: &[&str]| fingerprint(root.path(), &inputs(files), &ScanBounds::default()).unwrap();
        let (glob, dir, file) = (of(&["src/**/*.rs"]), of(&["src"]), of(&["./src/a.rs"]));
        fs::write(path("src/a.rs"), "a").unwrap();
        fs::write(path("src/b.txt"), "changed").unwrap();
        assert_eq!((of(&["src/**/*.rs"]), of(&["./src/a.rs"])), (glob.clone(), file.clone()));
        assert_ne!(of(&["src"]), dir);
        assert_eq!(matched(root.path(), "x/../src//./a.rs"), [Path::new("src/a.rs")]);
        assert_eq!(matched(root.path(), ".").len(), 2);
        fs::write(path("src/a.rs"), "b").unwrap();
        assert_ne!((of(&["src/**/*.rs"]), of(&["./src/a.rs"])), (glob.clone(), file));
        fs::rename(path("src/a.rs"), path("src/c.rs")).unwrap();
        assert_ne!(of(&["src/**/*.rs"]), glob);
    }

    #[test]
    fn missing_files_change_the_fingerprint_and_invalid_patterns_yield_none() {
        let root = tempfile::tempdir().unwrap();
        let of = |files: &[&str]| fingerprint(root.path(), &inputs(files), &ScanBounds::default());
        let missing = of(&["a"]).unwrap();
        assert_eq!(of(&["a"]).unwrap(), missing);
        fs::write(root.path().join("a"), "").unwrap();
        assert_ne!(of(&["a"]).unwrap(), missing);
        assert_ne!(of(&[]).unwrap(), missing);
        assert_eq!(of(&["["]), None);
        assert_eq!(of(&["../a"]), None);
        assert_eq!(of(&["/a"]), None);
        std::os::unix::fs::symlink("nowhere", root.path().join("l")).unwrap();
        assert!(of(&["l"]).is_some());
    }

    #[test]
    fn a_pipe_is_hashed_by_its_type_and_not_opened() {
        let root = tempfile::tempdir().unwrap();
        let of = || fingerprint(root.path(), &inputs(&["src"]), &ScanBounds::default()).unwrap();
        fs::create_dir(root.path().join("src")).unwrap();
        let pipe = root.path().join("src/ctl");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let with_pipe = of();
        assert_eq!(of(), with_pipe);
        fs::remove_file(&pipe).unwrap();
        fs::write(&pipe, "").unwrap();
        assert_ne!(of(), with_pipe);
    }

    #[test]
    fn special_files_are_hashed_by_their_type_without_blocking() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("src")).unwrap();
        let at = root.path().join("src/odd");
        let mut seen = std::collections::BTreeMap::new();
        for kind in
            ["nothing", "file", "pipe", "socket", "device", "directory", "nowhere", "odd", "/dev/zero"]
        {
            if !make(kind, &at) {
                eprintln!("skipped: no {kind} can be made here");
                continue;
            }
            let bounds = ScanBounds::default().at_most(std::time::Duration::from_secs(20));
            let found = fingerprint(root.path(), &inputs(&["src"]), &bounds).expect(kind);
            // An empty directory contributes no files, and so has the fingerprint of a missing path.
            if let Some(other) = seen.insert(found, kind) {
                assert_eq!((other, kind), ("nothing", "directory"));
            }
            let _ = fs::remove_file(&at).or_else(|_| fs::remove_dir(&at));
        }
        assert!(seen.len() >= 7, "{seen:?}");
    }

    /// Creates a file of this kind and returns whether that was possible; any other name is the target of a symbolic
    /// link.
    fn make(kind: &str, at: &Path) -> bool {
        let run = |program: &str, args: &[&str]| {
            std::process::Command::new(program).arg(at).args(args).status().unwrap().success()
        };
        match kind {
            "nothing" => true,
            "file" => fs::write(at, "").is_ok(),
            "pipe" => run("mkfifo", &[]),
            // The socket file remains after the listener is closed.
            "socket" => std::os::unix::net::UnixListener::bind(at).is_ok(),
            // Only root may create device files.
            "device" => run("mknod", &["c", "1", "5"]),
            "directory" => fs::create_dir(at).is_ok(),
            to => std::os::unix::fs::symlink(to, at).is_ok(),
        }
    }

    #[test]
    fn links_to_directories_of_the_project_are_followed_once() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        for name in ["src", "real"] {
            fs::create_dir(path(name)).unwrap();
        }
        fs::write(path("real/x"), "1").unwrap();
        for (to, link) in [("../real", "src/linked"), ("..", "src/loop"), ("/usr", "src/outside")] {
            std::os::unix::fs::symlink(to, path(link)).unwrap();
        }
        let of = || fingerprint(root.path(), &inputs(&["src/**"]), &ScanBounds::default()).unwrap();
        let before = of();
        assert_eq!(of(), before);
        fs::write(path("real/x"), "2").unwrap();
        assert_ne!(of(), before);
        let found = matched(root.path(), "src/**");
        assert!(found.contains(&"src/linked/x".into()) && found.contains(&"src/outside".into()), "{found:?}");
    }

    #[test]
    fn names_are_compared_as_bytes_and_excluded_files_are_ignored() {
        let root = tempfile::tempdir().unwrap();
        let odd = |byte: u8| root.path().join(std::ffi::OsStr::from_bytes(&[b'x', byte, b'.', b't']));
        let of = |files: &[&str]| fingerprint(root.path(), &inputs(files), &ScanBounds::default()).unwrap();
        fs::write(odd(0xff), "").unwrap();
        let before = of(&["*.t"]);
        fs::rename(odd(0xff), odd(0xfd)).unwrap();
        assert_ne!(of(&["*.t"]), before);
        fs::create_dir_all(root.path().join("src/gen")).unwrap();
        fs::write(root.path().join("src/gen/b"), "1").unwrap();
        let (with, without) = (of(&["src/**"]), of(&["src/**", "!src/gen/**"]));
        fs::write(root.path().join("src/gen/b"), "2").unwrap();
        assert_ne!(of(&["src/**"]), with);
        assert_eq!(of(&["src/**", "!src/gen/**"]), without);
    }
}
