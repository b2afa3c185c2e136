//! The way of events to a handle, with the output of programs among them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::time::Duration;

use taskpawl_engine::{Output, OutputStream, RunEvent};
use taskpawl_model::value::{CallId, TaskId};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// Time between two looks at the output files of running calls.
const PAUSE: Duration = Duration::from_millis(100);

/// Bytes that are read from a file at once, and so the longest text of an event.
const MAX_READ: u64 = 64 << 10;

/// Moves events to the reader of a handle until the run has sent its last one.
pub(super) async fn forward(
    mut events: mpsc::UnboundedReceiver<RunEvent>,
    reader: mpsc::Sender<RunEvent>,
    mut followers: Option<Followers>,
) {
    let mut due = Instant::now() + PAUSE;
    loop {
        let has_calls = followers.as_ref().is_some_and(|followers| !followers.calls.is_empty());
        let event = tokio::select! {
            biased;
            () = sleep_until(due), if has_calls => None,
            event = events.recv() => match event {
                Some(event) => Some(event),
                None => return,
            },
        };
        if let Some(followers) = &mut followers {
            if event.is_none() {
                followers.read_all(&reader).await;
                due = Instant::now() + PAUSE;
            }
            followers.follow(event.as_ref(), &reader).await;
        }
        if let Some(event) = event {
            // Fails for a reader that is not interested; the run goes on.
            let _ = reader.send(event).await;
        }
    }
}

/// Reads the output files of the running calls of a run.
#[derive(Debug)]
pub(super) struct Followers {
    files: Output,
    calls: BTreeMap<(TaskId, CallId), [FollowedFile; 2]>,
}

impl Followers {
    pub(super) fn new(files: Output) -> Self {
        Self { files, calls: BTreeMap::new() }
    }

    /// Begins with the files of a call that starts, and reads those of a call that ended to their end.
    async fn follow(&mut self, event: Option<&RunEvent>, reader: &mpsc::Sender<RunEvent>) {
        if let Some(RunEvent::CallStarted { task, call, attempt, .. }) = event {
            let stem = self.files.stem(task, call, *attempt);
            let files = OutputStream::ALL.map(|stream| FollowedFile::new(&stem, stream));
            self.calls.insert((task.clone(), call.clone()), files);
        } else if let Some(RunEvent::CallEnded { task, call, .. }) = event {
            let key = (task.clone(), call.clone());
            if let Some(files) = self.calls.remove(&key) {
                read(&key, files, true, reader).await;
            }
        }
    }

    async fn read_all(&mut self, reader: &mpsc::Sender<RunEvent>) {
        for (key, files) in std::mem::take(&mut self.calls) {
            let files = read(&key, files, false, reader).await;
            self.calls.insert(key, files);
        }
    }
}

/// Sends the new output of a call.
async fn read(
    key: &(TaskId, CallId),
    mut files: [FollowedFile; 2],
    is_last: bool,
    reader: &mpsc::Sender<RunEvent>,
) -> [FollowedFile; 2] {
    for file in &mut files {
        while let Some(text) = file.read_on_another_thread(is_last).await {
            let (task, call, stream) = (key.0.clone(), key.1.clone(), file.stream);
            let _ = reader.send(RunEvent::Output { task, call, stream, text }).await;
        }
    }
    files
}

/// An output file with the position up to which it was read.
#[derive(Debug, Clone)]
struct FollowedFile {
    path: PathBuf,
    stream: OutputStream,
    position: u64,
}

impl FollowedFile {
    fn new(stem: &std::path::Path, stream: OutputStream) -> Self {
        let mut path = stem.as_os_str().to_owned();
        path.push(".");
        path.push(stream.as_str());
        Self { path: path.into(), stream, position: 0 }
    }

    async fn read_on_another_thread(&mut self, is_last: bool) -> Option<String> {
        let mut file = self.clone();
        let work = tokio::task::spawn_blocking(move || (file.read(is_last).ok().flatten(), file));
        // Fails only when the runtime ends.
        let (text, file) = work.await.ok()?;
        *self = file;
        text
    }

    /// Returns text that was added since the last read, if there is any. A character that is not complete yet is left for
    /// the next read.
    fn read(&mut self, is_last: bool) -> io::Result<Option<String>> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.position))?;
        let mut bytes = Vec::new();
        file.take(MAX_READ).read_to_end(&mut bytes)?;
        let is_full = bytes.len() as u64 == MAX_READ;
        if !is_last || is_full {
            bytes.truncate(complete(&bytes));
        }
        self.position += bytes.len() as u64;
        Ok((!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned()))
    }
}

/// Returns the length without an incomplete character at the end.
fn complete(bytes: &[u8]) -> usize {
    match str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        // Invalid bytes in the middle are replaced, so the end has to be looked at on its own.
        Err(_) => {
            let start = bytes.len().saturating_sub(3);
            let is_start = |at: &usize| bytes[*at] >= 0xc0;
            let last = (start..bytes.len()).rev().find(is_start);
            match last.map(|at| (at, str::from_utf8(&bytes[at..]))) {
                Some((at, Err(error))) if error.error_len().is_none() => at,
                Some(_) | None => bytes.len(),
            }
        }
        Ok(_) => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::complete;

    #[test]
    fn an_incomplete_character_is_left_for_the_next_read() {
        let cases: [(&[u8], usize); 5] =
            [(b"abc", 3), (b"a\xc3", 1), (b"\xffa\xe2\x82", 2), (b"\xffa", 2), (b"a\xc3\xa9", 3)];
        for (bytes, length) in cases {
            assert_eq!(complete(bytes), length, "{bytes:?}");
        }
    }
}
