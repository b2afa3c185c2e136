//! Sources of the values of secrets.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use taskpawl_process::SearchPath;
use thiserror::Error;

use crate::text::last_line;

/// Shortest accepted value of a secret, in bytes. Shorter values occur by chance in ordinary text, so that they cannot be redacted.
pub const MIN_SECRET_BYTES: usize = 6;

/// Longest accepted value, in bytes.
const MAX_BYTES: usize = 64 << 10;

/// Time limit for a command that prints a secret; a person may have to unlock a password store first.
const PATIENCE: Duration = Duration::from_secs(60);

/// Provides the values of secrets to calls that name them as `${secret:NAME}`.
///
/// A value is requested when a call needs it, at most once in a run. It is kept in memory until the run ends and is
/// never written to disk.
pub trait SecretSource: fmt::Debug + Send + Sync {
    /// Returns the value of a secret. It may block, for it is called on a thread that allows that.
    ///
    /// # Errors
    ///
    /// The secret is unknown, its source is unavailable or not private, or its value is unusable.
    fn secret(&self, name: &str) -> Result<String, SecretError>;

    /// Checks that a secret is available, as far as that is known without a command or user interaction. By default
    /// nothing is known.
    ///
    /// # Errors
    ///
    /// The same as those of [`secret`](Self::secret).
    fn check(&self, name: &str) -> Result<(), SecretError> {
        let _ = name;
        Ok(())
    }

    /// Returns the names and values that are available at no cost and without user interaction.
    ///
    /// A run redacts them even if none of its calls names them. By default there are none.
    fn at_hand(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}

/// Error of reading a secret; it never contains any part of the value.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SecretError {
    /// The source does not define the secret.
    #[error("unknown secret `{name}`: {looked}")]
    Unknown {
        /// Name of the secret.
        name: String,
        /// Places that were searched, and a hint on defining secrets.
        looked: String,
    },
    /// The environment variable of the secret is not set.
    #[error("failed to read secret `{name}`: the environment variable `{variable}` is not set")]
    Unset {
        /// Name of the secret.
        name: String,
        /// Name of the variable.
        variable: String,
    },
    /// The file of the secret cannot be read.
    #[error("failed to read secret `{name}` from `{}`", .path.display())]
    File {
        /// Name of the secret.
        name: String,
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file of the secret is accessible to other users.
    #[error("failed to read secret `{name}`: `{}` {problem}", .path.display())]
    Exposed {
        /// Name of the secret.
        name: String,
        /// Path of the file.
        path: PathBuf,
        /// Description of the problem, with a remedy.
        problem: String,
    },
    /// The command that prints the secret failed.
    #[error("failed to read secret `{name}`: `{program}` {problem}")]
    Command {
        /// Name of the secret.
        name: String,
        /// Program of the command.
        program: String,
        /// Description of the failure.
        problem: String,
    },
    /// The value of the secret is unusable.
    #[error("secret `{name}` {problem}")]
    Value {
        /// Name of the secret.
        name: String,
        /// Description of the problem with the value.
        problem: &'static str,
    },
}

/// Source of one secret.
#[derive(Clone, PartialEq, Eq)]
pub enum SecretFrom {
    /// Environment variable with its captured value.
    Variable {
        /// Name of the variable.
        name: String,
        /// Value of the variable; `None` if it is not set.
        value: Option<String>,
    },
    /// Text of a file that only its owner may read, without one line break at the end.
    File(PathBuf),
    /// Standard output of a program that runs outside of any sandbox, without one line break at the end.
    Command {
        /// Program and its arguments.
        argv: Vec<String>,
        /// Working directory of the program.
        directory: PathBuf,
    },
}

impl fmt::Display for SecretFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable { name, .. } => write!(f, "the environment variable `{name}`"),
            Self::File(path) => write!(f, "the file `{}`", path.display()),
            Self::Command { argv, .. } => write!(f, "the command `{}`", argv.join(" ")),
        }
    }
}

impl fmt::Debug for SecretFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Secrets that a configuration defines.
#[derive(Clone, Debug, Default)]
pub struct ConfiguredSecrets {
    secrets: BTreeMap<String, SecretFrom>,
    /// Hint in the error for an undefined secret.
    remedy: String,
    /// Directories that programs of plans can write to; commands are never taken from there.
    writable: Vec<PathBuf>,
}

impl ConfiguredSecrets {
    /// Makes a source from secrets by name. `remedy` is the hint on defining missing ones.
    pub fn new(secrets: BTreeMap<String, SecretFrom>, remedy: impl Into<String>) -> Self {
        Self { secrets, remedy: remedy.into(), writable: Vec::new() }
    }

    /// Excludes directories that programs of plans can write to: commands are not taken from there, and `PATH` of a
    /// command omits them. Otherwise a plan could replace the program that prints a secret.
    #[must_use]
    pub fn not_from(mut self, writable: Vec<PathBuf>) -> Self {
        self.writable = writable;
        self
    }
}

impl SecretSource for ConfiguredSecrets {
    fn secret(&self, name: &str) -> Result<String, SecretError> {
        match self.secrets.get(name) {
            None => Err(SecretError::Unknown { name: name.to_owned(), looked: self.remedy.clone() }),
            Some(SecretFrom::Variable { value: Some(value), .. }) => checked(name, value.clone()),
            Some(SecretFrom::Variable { name: variable, value: None }) => {
                Err(SecretError::Unset { name: name.to_owned(), variable: variable.clone() })
            }
            Some(SecretFrom::File(path)) => checked(name, from_file(name, path)?),
            Some(SecretFrom::Command { argv, directory }) => {
                let search = SearchPath::outside(&self.writable);
                checked(name, from_command(name, argv, directory, &search)?)
            }
        }
    }

    fn check(&self, name: &str) -> Result<(), SecretError> {
        if self.secrets.get(name).is_some_and(has_cost) { Ok(()) } else { self.secret(name).map(drop) }
    }

    fn at_hand(&self) -> Vec<(String, String)> {
        let cheap = self.secrets.iter().filter(|(_, from)| !has_cost(from));
        cheap.filter_map(|(name, _)| Some((name.clone(), self.secret(name).ok()?))).collect()
    }
}

/// Returns whether a program has to run for a value.
fn has_cost(from: &SecretFrom) -> bool {
    matches!(from, SecretFrom::Command { .. })
}

/// Source without any secrets.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSecrets;

impl SecretSource for NoSecrets {
    fn secret(&self, name: &str) -> Result<String, SecretError> {
        let looked = "no source of secrets is configured".to_owned();
        Err(SecretError::Unknown { name: name.to_owned(), looked })
    }

    fn check(&self, name: &str) -> Result<(), SecretError> {
        self.secret(name).map(drop)
    }
}

/// Returns whether a secret may have this name; references in arguments follow the same rule.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Longest name, in bytes.
const MAX_NAME: usize = 64;

/// Checks a value from a source.
pub(crate) fn checked(name: &str, value: String) -> Result<String, SecretError> {
    let problem = if value.len() < MIN_SECRET_BYTES {
        "is shorter than 6 bytes, which is too short for reliable redaction"
    } else if value.len() > MAX_BYTES {
        "is longer than 64 KiB"
    } else if value.contains('\0') {
        "contains a NUL byte, which cannot be passed to a program"
    } else {
        return Ok(value);
    };
    Err(SecretError::Value { name: name.to_owned(), problem })
}

fn from_file(name: &str, path: &Path) -> Result<String, SecretError> {
    let failed = |source| SecretError::File { name: name.to_owned(), path: path.to_owned(), source };
    // Opening a named pipe without a writer would block the run.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file =
        File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(|error| failed(error.into()))?);
    // The checks use the open file: checking the path would be a race with a replacement of the file.
    let data = file.metadata().map_err(failed)?;
    let exposed =
        |problem: String| SecretError::Exposed { name: name.to_owned(), path: path.to_owned(), problem };
    if !data.is_file() {
        return Err(exposed("is not a regular file".to_owned()));
    }
    if data.uid() != rustix::process::geteuid().as_raw() {
        return Err(exposed("belongs to another user".to_owned()));
    }
    if data.mode() & 0o077 != 0 {
        let mode = data.mode() & 0o777;
        return Err(exposed(format!(
            "is accessible to other users (mode {mode:04o}); run `chmod 600` on it"
        )));
    }
    let bytes = read(file).map_err(failed)?;
    text(name, bytes)
}

/// Reads at most a little more than the longest value: two bytes for a line break, and one by which an oversized value
/// is noticed.
fn read(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES as u64 + 3).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn text(name: &str, bytes: Vec<u8>) -> Result<String, SecretError> {
    let Ok(mut text) = String::from_utf8(bytes) else {
        return Err(SecretError::Value { name: name.to_owned(), problem: "is not UTF-8 text" });
    };
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}

fn from_command(
    name: &str,
    argv: &[String],
    directory: &Path,
    search: &SearchPath,
) -> Result<String, SecretError> {
    let program = argv.first().cloned().unwrap_or_default();
    let failed =
        |problem: String| SecretError::Command { name: name.to_owned(), program: program.clone(), problem };
    let file = if program.contains('/') {
        PathBuf::from(&program)
    } else {
        search.find(&program).map_err(|error| failed(format!("could not be started: {error}")))?
    };
    let mut command = Command::new(file);
    command.args(argv.iter().skip(1)).current_dir(directory).env("PATH", search.as_os_str());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| failed(format!("could not be started: {error}")))?;
    let printed = collect(&mut child).map_err(failed)?;
    text(name, printed)
}

/// Returns the standard output of a program that succeeds in time.
fn collect(child: &mut Child) -> Result<Vec<u8>, String> {
    let (sender, receiver) = mpsc::channel();
    let streams: [Option<Box<dyn Read + Send>>; 2] = [
        child.stdout.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>),
        child.stderr.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>),
    ];
    for (number, stream) in streams.into_iter().flatten().enumerate() {
        let sender = sender.clone();
        // Both streams are read in threads: a program that fills one pipe while the other is read would block. The
        // threads end when the program closes its output. If a descendant keeps it open, they are left behind at the
        // deadline.
        std::thread::spawn(move || sender.send((number, read(stream).unwrap_or_default())));
    }
    drop(sender);
    let end = Instant::now() + PATIENCE;
    let mut printed = [Vec::new(), Vec::new()];
    while let Ok((number, bytes)) = receiver.recv_timeout(end.saturating_duration_since(Instant::now())) {
        printed[number] = bytes;
    }
    let status = ended(child, end)?;
    let [stdout, stderr] = printed;
    if status.success() {
        return Ok(stdout);
    }
    let message = last_line(&String::from_utf8_lossy(&stderr));
    Err(if message.is_empty() {
        format!("ended with {status}")
    } else {
        format!("ended with {status}: {message}")
    })
}

fn ended(child: &mut Child, end: Instant) -> Result<std::process::ExitStatus, String> {
    const PAUSE: Duration = Duration::from_millis(2);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if Instant::now() < end => std::thread::sleep(PAUSE),
            Ok(None) => {
                // The errors are ignored, for the program may have exited just now.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("was still running after {} seconds", PATIENCE.as_secs()));
            }
            Err(error) => return Err(format!("could not be waited for: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn configured(from: SecretFrom) -> ConfiguredSecrets {
        ConfiguredSecrets::new([("S".to_owned(), from)].into(), "define it")
    }

    fn command(script: &str) -> ConfiguredSecrets {
        let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
        configured(SecretFrom::Command { argv, directory: PathBuf::from("/") })
    }

    fn value_or_error(source: &dyn SecretSource) -> String {
        source.secret("S").unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn secrets_come_from_variables_files_and_commands() {
        let variable = |value: Option<&str>| {
            configured(SecretFrom::Variable { name: "V".to_owned(), value: value.map(str::to_owned) })
        };
        assert_eq!(value_or_error(&variable(Some("value-1\n"))), "value-1\n");
        assert_eq!(value_or_error(&command("pwd; echo value-2")), "/\nvalue-2");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        std::fs::write(&path, "value-3\r\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let file = configured(SecretFrom::File(path.clone()));
        assert_eq!(value_or_error(&file), "value-3");
        assert_eq!(file.at_hand(), [("S".to_owned(), "value-3".to_owned())]);
        assert_eq!(command("echo value-2").at_hand(), []);
        let shown = format!("{:?} {:?}", variable(Some("value-1")), file);
        assert!(!shown.contains("value"), "{shown}");
    }

    #[test]
    fn errors_do_not_contain_the_secret() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let in_file = |text: &[u8], mode| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            value_or_error(&configured(SecretFrom::File(path.clone())))
                .replace(path.to_str().unwrap(), "FILE")
        };
        let unset = SecretFrom::Variable { name: "V".to_owned(), value: None };
        let folder = configured(SecretFrom::File(directory.path().to_owned()));
        let missing = configured(SecretFrom::File("/no/such/file".into()));
        let table = [
            NoSecrets.secret("S").unwrap_err().to_string(),
            configured(unset.clone()).secret("X").unwrap_err().to_string(),
            value_or_error(&configured(unset)),
            in_file(b"secret-value", 0o640),
            in_file(b"short", 0o600),
            in_file(b"secret\xff", 0o600),
            in_file(b"secret\0value", 0o600),
            in_file(&vec![b'x'; MAX_BYTES + 1], 0o600),
            value_or_error(&folder).replace(directory.path().to_str().unwrap(), "FOLDER"),
            value_or_error(&missing),
            value_or_error(&command("echo secret-value; echo locked >&2; exit 3")),
            value_or_error(&configured(SecretFrom::Command {
                argv: vec!["/no/such".to_owned()],
                directory: "/".into(),
            })),
        ];
        insta::assert_snapshot!(table.join("\n"));
    }
}
