//! Where the values of secrets come from.

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

/// The shortest value that is taken: shorter ones are found everywhere, and could not be taken out of what is kept.
const LEAST_BYTES: usize = 6;

/// The longest.
const MOST_BYTES: usize = 64 << 10;

/// How long a command may take that prints a secret: a person may have to unlock something first.
const PATIENCE: Duration = Duration::from_mins(1);

/// Gives the values of secrets to calls that name them as `${secret:NAME}`.
///
/// A value is asked for when a call needs it, once in a run; it is kept in memory until the run ends and written nowhere.
pub trait SecretSource: fmt::Debug + Send + Sync {
    /// Returns the value of a secret. It may block: it is called where that holds nobody up.
    fn secret(&self, name: &str) -> Result<String, SecretError>;

    /// Returns the names and values that can be had at no cost and without asking anybody. They are taken out of what a run keeps
    /// even where no call of it names them. By default there are none.
    fn at_hand(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}

/// Why a secret cannot be had. Nothing of its value is in it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SecretError {
    /// Nobody knows it.
    #[error("there is no secret `{name}`: {looked}")]
    Unknown {
        /// Its name.
        name: String,
        /// Where it was looked for, and what to do.
        looked: String,
    },
    /// It is in a variable that is not there.
    #[error("secret `{name}` is to be in the environment variable `{variable}`, which is not set")]
    Unset {
        /// Its name.
        name: String,
        /// The variable.
        variable: String,
    },
    /// Its file cannot be read.
    #[error("secret `{name}` is to be in `{}`, which cannot be read", .path.display())]
    File {
        /// Its name.
        name: String,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Its file is not as private as it has to be.
    #[error("secret `{name}` is to be in `{}`, which {problem}", .path.display())]
    Exposed {
        /// Its name.
        name: String,
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// The command that prints it did not.
    #[error("secret `{name}` is to come from `{program}`, which {problem}")]
    Command {
        /// Its name.
        name: String,
        /// The program.
        program: String,
        /// What became of it.
        problem: String,
    },
    /// It has a value that cannot be used.
    #[error("secret `{name}` {problem}")]
    Value {
        /// Its name.
        name: String,
        /// What is wrong with the value.
        problem: &'static str,
    },
}

/// Where one secret comes from.
#[derive(Clone, PartialEq, Eq)]
pub enum SecretFrom {
    /// An environment variable, with what it holds.
    Variable {
        /// Its name.
        name: String,
        /// Its value; `None` when it is not set.
        value: Option<String>,
    },
    /// The text of a file that nobody but its owner may read; one line break at its end is none of it.
    File(PathBuf),
    /// What a program prints, run outside of any sandbox; one line break at its end is none of it.
    Command {
        /// The program and its arguments.
        argv: Vec<String>,
        /// The directory that it runs in.
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

/// Secrets as a configuration names them.
#[derive(Clone, Debug, Default)]
pub struct ConfiguredSecrets {
    secrets: BTreeMap<String, SecretFrom>,
    /// What is said where there is none of a name.
    remedy: String,
    /// Where programs of plans may write: no command is taken from there.
    writable: Vec<PathBuf>,
}

impl ConfiguredSecrets {
    /// Returns these secrets by name. `remedy` says where others can be defined.
    pub fn new(secrets: BTreeMap<String, SecretFrom>, remedy: impl Into<String>) -> Self {
        Self { secrets, remedy: remedy.into(), writable: Vec::new() }
    }

    /// Takes no command from these places, in which programs of plans may write, nor lets a command find others there.
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

    fn at_hand(&self) -> Vec<(String, String)> {
        let has_cost = |from: &SecretFrom| matches!(from, SecretFrom::Command { .. });
        let cheap = self.secrets.iter().filter(|(_, from)| !has_cost(from));
        cheap.filter_map(|(name, _)| Some((name.clone(), self.secret(name).ok()?))).collect()
    }
}

/// No secrets at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSecrets;

impl SecretSource for NoSecrets {
    fn secret(&self, name: &str) -> Result<String, SecretError> {
        let looked = "nobody has said where secrets come from".to_owned();
        Err(SecretError::Unknown { name: name.to_owned(), looked })
    }
}

/// Returns whether a secret can have this name: the same that holds in arguments.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=MOST_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// The longest name.
const MOST_NAME: usize = 64;

/// Checks a value that a source has given.
pub(crate) fn checked(name: &str, value: String) -> Result<String, SecretError> {
    let problem = if value.len() < LEAST_BYTES {
        "is shorter than 6 bytes, and could not be told from other text where it has to be taken out"
    } else if value.len() > MOST_BYTES {
        "is longer than 64 KiB"
    } else if value.contains('\0') {
        "holds a NUL byte, which no program can be given"
    } else {
        return Ok(value);
    };
    Err(SecretError::Value { name: name.to_owned(), problem })
}

fn from_file(name: &str, path: &Path) -> Result<String, SecretError> {
    let failed = |source| SecretError::File { name: name.to_owned(), path: path.to_owned(), source };
    // A pipe that nobody writes to must not hold up a run.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file =
        File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(|error| failed(error.into()))?);
    let data = file.metadata().map_err(failed)?;
    let exposed =
        |problem: String| SecretError::Exposed { name: name.to_owned(), path: path.to_owned(), problem };
    if !data.is_file() {
        return Err(exposed("is no file".to_owned()));
    }
    if data.uid() != rustix::process::geteuid().as_raw() {
        return Err(exposed("belongs to another user".to_owned()));
    }
    if data.mode() & 0o077 != 0 {
        let mode = data.mode() & 0o777;
        return Err(exposed(format!("others may use, too (mode {mode:04o}); `chmod 600` makes it private")));
    }
    let bytes = read(file).map_err(failed)?;
    text(name, bytes)
}

/// Reads one byte more than may be there at most, so that too long a value is noticed.
fn read(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MOST_BYTES as u64 + 3).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn text(name: &str, bytes: Vec<u8>) -> Result<String, SecretError> {
    let Ok(mut text) = String::from_utf8(bytes) else {
        return Err(SecretError::Value { name: name.to_owned(), problem: "is no text" });
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

/// Returns what a program prints when it ends well in time.
fn collect(child: &mut Child) -> Result<Vec<u8>, String> {
    let (sender, receiver) = mpsc::channel();
    let streams: [Option<Box<dyn Read + Send>>; 2] = [
        child.stdout.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>),
        child.stderr.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>),
    ];
    for (number, stream) in streams.into_iter().flatten().enumerate() {
        let sender = sender.clone();
        // They end with the program: nobody else has the other end, or it is not waited for.
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
    let said = last_line(&String::from_utf8_lossy(&stderr));
    Err(if said.is_empty() { format!("ended with {status}") } else { format!("ended with {status}: {said}") })
}

fn ended(child: &mut Child, end: Instant) -> Result<std::process::ExitStatus, String> {
    const PAUSE: Duration = Duration::from_millis(2);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if Instant::now() < end => std::thread::sleep(PAUSE),
            Ok(None) => {
                // It may have ended just now.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("was not over after {} seconds", PATIENCE.as_secs()));
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

    fn said(source: &dyn SecretSource) -> String {
        source.secret("S").unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn variables_files_and_commands_give_secrets() {
        let variable = |value: Option<&str>| {
            configured(SecretFrom::Variable { name: "V".to_owned(), value: value.map(str::to_owned) })
        };
        assert_eq!(said(&variable(Some("value-1\n"))), "value-1\n");
        assert_eq!(said(&command("pwd; echo value-2")), "/\nvalue-2");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        std::fs::write(&path, "value-3\r\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let file = configured(SecretFrom::File(path.clone()));
        assert_eq!(said(&file), "value-3");
        assert_eq!(file.at_hand(), [("S".to_owned(), "value-3".to_owned())]);
        assert_eq!(command("echo value-2").at_hand(), []);
        let shown = format!("{:?} {:?}", variable(Some("value-1")), file);
        assert!(!shown.contains("value"), "{shown}");
    }

    #[test]
    fn what_is_wrong_with_a_secret_is_said_without_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let in_file = |text: &[u8], mode| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            said(&configured(SecretFrom::File(path.clone()))).replace(path.to_str().unwrap(), "FILE")
        };
        let unset = SecretFrom::Variable { name: "V".to_owned(), value: None };
        let folder = configured(SecretFrom::File(directory.path().to_owned()));
        let missing = configured(SecretFrom::File("/no/such/file".into()));
        let table = [
            NoSecrets.secret("S").unwrap_err().to_string(),
            configured(unset.clone()).secret("X").unwrap_err().to_string(),
            said(&configured(unset)),
            in_file(b"secret-value", 0o640),
            in_file(b"short", 0o600),
            in_file(b"secret\xff", 0o600),
            in_file(b"secret\0value", 0o600),
            in_file(&vec![b'x'; MOST_BYTES + 1], 0o600),
            said(&folder).replace(directory.path().to_str().unwrap(), "FOLDER"),
            said(&missing),
            said(&command("echo secret-value; echo locked >&2; exit 3")),
            said(&configured(SecretFrom::Command {
                argv: vec!["/no/such".to_owned()],
                directory: "/".into(),
            })),
        ];
        insta::assert_snapshot!(table.join("\n"));
    }
}
