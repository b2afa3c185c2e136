//! The records of the steps of calls, beside their output.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use taskpawl_tools::{StepJournal, Vault, keep_owner_rights, make_private_directories};

use crate::secrets::redactor;

/// The files of one call: `.steps` has a line for each step, `.details` the last details.
///
/// They are files and not part of the store, because a step is recorded while the call runs: the store would have to commit each of them
/// in the middle of a call, under the lock of all other processes. A prune removes them with the output of the task.
#[derive(Debug)]
pub(crate) struct FileJournal {
    stem: PathBuf,
    /// Digest of the tool and its arguments.
    work: String,
    vault: Vault,
}

#[derive(Debug, Serialize, Deserialize)]
struct Line {
    /// Name of the step; empty for details.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    step: String,
    work: String,
    value: Value,
}

impl FileJournal {
    /// Returns the journal of a call. `stem` is the path of its files without the ending.
    pub(crate) fn new(stem: PathBuf, tool: &str, args: &Value, vault: Vault) -> Self {
        let work = Sha256::new().chain_update(tool).chain_update([0]).chain_update(args.to_string());
        Self { stem, work: format!("{:x}", work.finalize()), vault }
    }

    /// Returns the digest of the tool and its arguments.
    pub(crate) fn work(&self) -> &str {
        &self.work
    }

    fn path(&self, ending: &str) -> PathBuf {
        let mut path = self.stem.clone().into_os_string();
        path.push(ending);
        path.into()
    }

    fn line(&self, step: &str, mut value: Value) -> io::Result<Vec<u8>> {
        redactor(&self.vault).value(&mut value);
        let line = Line { step: step.to_owned(), work: self.work.clone(), value };
        let mut line = serde_json::to_vec(&line)?;
        line.push(b'\n');
        Ok(line)
    }

    /// Returns the last value of a step in a file. Lines of other work are skipped, and so is one that a crash has cut.
    fn last(&self, ending: &str, step: &str) -> io::Result<Option<Value>> {
        let text = match fs::read(self.path(ending)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text?,
        };
        let lines = text.split(|byte| *byte == b'\n').rev();
        let mut lines = lines.filter_map(|line| serde_json::from_slice::<Line>(line).ok());
        Ok(lines.find(|line| line.step == step && line.work == self.work).map(|line| line.value))
    }
}

/// Opens a file that only its owner can read.
fn open(path: &Path, options: &mut fs::OpenOptions) -> io::Result<File> {
    if let Some(directory) = path.parent() {
        make_private_directories(directory)?;
    }
    let file = options.create(true).mode(0o600).open(path)?;
    keep_owner_rights(&file)?;
    Ok(file)
}

impl StepJournal for FileJournal {
    fn result(&self, step: &str) -> io::Result<Option<Value>> {
        self.last(".steps", step)
    }

    fn record(&self, step: &str, result: Value) -> io::Result<()> {
        // A line that a crash has cut ends here, so that it does not swallow the new one.
        let mut line = vec![b'\n'];
        line.extend(self.line(step, result)?);
        let mut file = open(&self.path(".steps"), File::options().append(true))?;
        file.write_all(&line)?;
        file.sync_all()
    }

    fn details(&self) -> io::Result<Option<Value>> {
        self.last(".details", "")
    }

    fn replace_details(&self, details: Value) -> io::Result<()> {
        let part = self.path(".details.part");
        open(&part, File::options().write(true).truncate(true))?.write_all(&self.line("", details)?)?;
        fs::rename(part, self.path(".details"))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use taskpawl_tools::NoSecrets;

    use super::*;

    #[test]
    fn steps_belong_to_their_work_and_a_cut_line_is_skipped() {
        let directory = tempfile::tempdir().unwrap();
        let stem = directory.path().join("a@c1@0-0");
        let open = |args| FileJournal::new(stem.clone(), "pay", &args, Vault::open(Arc::new(NoSecrets)));
        let journal = open(json!({"sum": 1}));
        assert_eq!(journal.result("charge").unwrap(), None);
        journal.record("charge", json!(7)).unwrap();
        File::options()
            .append(true)
            .open(stem.with_extension("steps"))
            .unwrap()
            .write_all(b"{\"step\":")
            .unwrap();
        journal.record("mail", json!("sent")).unwrap();
        journal.replace_details(json!(1)).unwrap();
        journal.replace_details(json!(2)).unwrap();
        let again = open(json!({"sum": 1}));
        assert_eq!(
            (again.result("charge").unwrap(), again.result("mail").unwrap()),
            (Some(json!(7)), Some(json!("sent")))
        );
        assert_eq!(again.details().unwrap(), Some(json!(2)));
        assert_eq!(open(json!({"sum": 2})).result("charge").unwrap(), None);
    }
}
