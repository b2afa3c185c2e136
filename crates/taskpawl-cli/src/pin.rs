//! The optional PIN for decisions.
//!
//! An agent that hides its markers and opens a terminal looks like a person, but does not know the PIN. The hash is in the user's state
//! directory, which the sandbox hides from programs. A program without the sandbox can remove it.

mod fault;

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use serde::{Deserialize, Serialize};
use taskpawl::model::value::Timestamp;
use taskpawl::tools::read_if_there;
use taskpawl::{Source as _, SystemSource};

use crate::context::Context;
use crate::error::CliError;
use crate::state_files::{lock_state, state_file, write_state};
use fault::MAX_TRIES;
pub(crate) use fault::PinFault;

/// The duration of the lock.
const LOCKED_FOR: Duration = Duration::from_mins(10);

/// The lengths that a PIN may have, in characters.
pub(crate) const LENGTHS: std::ops::RangeInclusive<usize> = 4..=64;

/// A record has one hash of about a hundred bytes.
const MAX_BYTES: u64 = 4096;

/// The place of the user's PIN, which may not be set.
#[derive(Debug, Clone)]
pub(crate) struct Pin {
    path: PathBuf,
}

/// The content of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    /// In the format of password hashes, with salt and costs.
    hash: String,
    /// Wrong PINs in a row. A PIN under test counts as wrong until it is known to be right.
    #[serde(default)]
    failures: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    locked_until: Option<Timestamp>,
}

/// Asks for the PIN at the terminal, if one is set or required by a policy.
pub(crate) fn ask(context: &Context, by: &'static str) -> Result<(), CliError> {
    let fault = |fault| CliError::Pin { by, fault };
    let Some(pin) = Pin::needed(context).map_err(fault)? else { return Ok(()) };
    let typed = type_in("PIN: ").ok_or(PinFault::NotTyped).map_err(fault)?;
    pin.check(&typed).map_err(fault)
}

impl Pin {
    /// Returns the place of the PIN, whether it is set or not; `None` where there is no state of the user.
    pub(crate) fn place(context: &Context) -> Option<Self> {
        state_file(context, "pin.json").map(|path| Self { path })
    }

    /// Returns the PIN where decisions need it.
    pub(crate) fn needed(context: &Context) -> Result<Option<Self>, PinFault> {
        let place = Self::place(context);
        if let Some(pin) = place
            && pin.is_set()?
        {
            return Ok(Some(pin));
        }
        // A policy that cannot be read is an error of the command itself.
        match context.policy().ok().and_then(taskpawl::tools::Policy::requires_pin) {
            Some(file) => Err(PinFault::Missing(file)),
            None => Ok(None),
        }
    }

    /// Returns whether one is set.
    pub(crate) fn is_set(&self) -> Result<bool, PinFault> {
        Ok(self.read()?.is_some())
    }

    /// Sets it.
    pub(crate) fn set(&self, typed: &str) -> Result<(), PinFault> {
        let _lock = self.lock()?;
        let hash = Argon2::default().hash_password(typed.as_bytes());
        let hash = hash.map_err(|error| self.fault(io::Error::other(error.to_string())))?.to_string();
        self.write(&Record { hash, failures: 0, locked_until: None })
    }

    /// Removes it.
    pub(crate) fn remove(&self) -> Result<(), PinFault> {
        let _lock = self.lock()?;
        fs::remove_file(&self.path).map_err(|error| self.fault(error))
    }

    /// Checks a typed PIN. Each try is on disk before the comparison, so that neither parallel tries nor a kill give more tries.
    pub(crate) fn check(&self, typed: &str) -> Result<(), PinFault> {
        let _lock = self.lock()?;
        // Not the clock of tests: a caller could move it.
        let now = SystemSource.now();
        let Some(mut record) = self.read()? else { return Ok(()) };
        if let Some(until) = record.locked_until {
            if now < until {
                return Err(PinFault::Locked { until });
            }
            record.failures = 0;
        }
        record.failures += 1;
        record.locked_until = (record.failures >= MAX_TRIES).then(|| now + LOCKED_FOR);
        self.write(&record)?;
        let hash = PasswordHash::new(&record.hash)
            .map_err(|error| self.fault(io::Error::other(error.to_string())))?;
        if Argon2::default().verify_password(typed.as_bytes(), &hash).is_err() {
            return Err(PinFault::Wrong { left: MAX_TRIES.saturating_sub(record.failures) });
        }
        self.write(&Record { failures: 0, locked_until: None, hash: record.hash.clone() })
    }

    fn read(&self) -> Result<Option<Record>, PinFault> {
        let text = read_if_there(&self.path, MAX_BYTES).map_err(|error| self.fault(error))?;
        let record = text.map(|text| serde_json::from_str(&text)).transpose();
        record.map_err(|error| self.fault(error.into()))
    }

    fn write(&self, record: &Record) -> Result<(), PinFault> {
        let text = serde_json::to_string_pretty(record).expect("BUG: a record is always valid JSON");
        write_state(&self.path, &text).map_err(|error| self.fault(error))
    }

    /// Locks out other processes that try at the same time.
    fn lock(&self) -> Result<File, PinFault> {
        lock_state(&self.path).map_err(|error| self.fault(error))
    }

    fn fault(&self, error: io::Error) -> PinFault {
        PinFault::File(self.path.clone(), error)
    }
}

/// Reads a line from the controlling terminal without echo; `None` where nothing is typed.
pub(crate) fn type_in(question: &str) -> Option<String> {
    let terminal = File::options().read(true).write(true).open("/dev/tty").ok()?;
    let _hidden = Hidden::begin(&terminal, true)?;
    (&terminal).write_all(question.as_bytes()).ok()?;
    let line = line_of(&terminal);
    let _ = (&terminal).write_all(b"\r\n");
    line
}

/// Reads bytes to the end of a line. Ctrl-C arrives as a byte here, so that the terminal never stays without echo.
fn line_of(mut terminal: &File) -> Option<String> {
    const CANCEL: [u8; 2] = [3, 4];
    const BACK: [u8; 2] = [8, 127];
    let (mut line, mut byte) = (Vec::new(), [0]);
    while terminal.read(&mut byte).ok()? == 1 && line.len() < 1024 {
        match byte[0] {
            b'\n' | b'\r' => return String::from_utf8(line).ok().filter(|line| !line.is_empty()),
            byte if CANCEL.contains(&byte) => return None,
            byte if BACK.contains(&byte) => drop(line.pop()),
            byte => line.push(byte),
        }
    }
    None
}

/// A terminal without echo, until this is dropped.
pub(crate) struct Hidden<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> Hidden<'a> {
    /// Turns the echo off. With `is_raw` each key is read by itself, also those that would end the process.
    pub(crate) fn begin(terminal: &'a File, is_raw: bool) -> Option<Self> {
        let before = tcgetattr(terminal).ok()?;
        let mut modes = before.clone();
        modes.local_modes.remove(LocalModes::ECHO);
        if is_raw {
            modes.local_modes.remove(LocalModes::ICANON | LocalModes::ISIG);
            modes.special_codes[SpecialCodeIndex::VMIN] = 1;
            modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        }
        // Input that was typed ahead stays.
        tcsetattr(terminal, OptionalActions::Now, &modes).ok()?;
        Some(Self { terminal, before })
    }
}

impl Drop for Hidden<'_> {
    fn drop(&mut self) {
        let _ = tcsetattr(self.terminal, OptionalActions::Now, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_TRIES, Pin, PinFault};

    fn pin(directory: &std::path::Path) -> Pin {
        Pin { path: directory.join("state").join("pin.json") }
    }

    #[test]
    fn five_wrong_ones_lock_it_for_ten_minutes_for_the_right_one_too() {
        let directory = tempfile::tempdir().unwrap();
        let pin = pin(directory.path());
        pin.set("1234").unwrap();
        pin.check("1234").unwrap();
        for left in (0..MAX_TRIES).rev() {
            assert!(matches!(pin.check("4321"), Err(PinFault::Wrong { left: found }) if found == left));
        }
        let Err(PinFault::Locked { until }) = pin.check("1234") else { panic!("it is locked") };
        let minutes = (until - chrono::Utc::now()).num_seconds();
        assert!((590..=600).contains(&minutes), "{minutes}");
        // The time is over.
        let mut record = pin.read().unwrap().unwrap();
        record.locked_until = Some(chrono::Utc::now() - chrono::TimeDelta::seconds(1));
        pin.write(&record).unwrap();
        assert!(matches!(pin.check("4321"), Err(PinFault::Wrong { left: 4 })), "tries begin anew");
        pin.check("1234").unwrap();
        assert_eq!(pin.read().unwrap().unwrap().failures, 0);
    }

    #[test]
    fn it_is_kept_as_a_hash_that_others_cannot_read() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let pin = pin(directory.path());
        assert!(!pin.is_set().unwrap());
        pin.set("hunter22").unwrap();
        let text = std::fs::read_to_string(&pin.path).unwrap();
        assert!(text.contains("$argon2id$") && !text.contains("hunter22"), "{text}");
        assert_eq!(std::fs::metadata(&pin.path).unwrap().permissions().mode() & 0o777, 0o600);
        pin.remove().unwrap();
        assert!(!pin.is_set().unwrap());
    }

    #[test]
    fn a_damaged_record_opens_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let pin = pin(directory.path());
        pin.set("1234").unwrap();
        for text in ["", "{}", "[]", r#"{"hash": "x"}"#] {
            std::fs::write(&pin.path, text).unwrap();
            assert!(matches!(pin.check("1234"), Err(PinFault::File(..))), "{text}");
        }
    }
}
