//! The tickets that have begun here, on disk. A process that was killed knows them after its restart.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::call_executor::Ticket;
use crate::error::RunError;

/// The number of tickets that are kept. An engine keeps its own record for 24 hours; at 1,000 calls a second older tickets are only
/// refused by their expiry.
const MAX_TICKETS: usize = 200_000;

/// A ticket that has begun.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    ticket: Ticket,
    delivery: String,
}

/// An earlier arrival of a ticket, if there was one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sighting {
    /// It has not begun.
    New,
    /// It has begun, and the same request brings it again.
    SameDelivery,
    /// It has begun for another request.
    OtherDelivery,
}

#[derive(Debug)]
pub(super) struct SeenTickets {
    file: File,
    known: HashMap<Ticket, String>,
}

impl SeenTickets {
    pub(super) fn open(files: &Path, worker: &str) -> Result<Self, RunError> {
        let path = files.join("runs").join(format!("worker-{worker}.tickets"));
        let failed = |source| RunError::Files { action: "open", path: path.clone(), source };
        let known = read(&path).map_err(failed)?;
        if known.len() > MAX_TICKETS {
            std::fs::rename(&path, path.with_extension("tickets.old")).map_err(failed)?;
        }
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path).map_err(failed)?;
        Ok(Self { file, known })
    }

    pub(super) fn has(&self, ticket: &Ticket) -> bool {
        self.known.contains_key(ticket)
    }

    /// Records that a ticket begins. The line is not synced: it has to survive a kill of this process, and after a loss of power the
    /// engine's journal still has the start.
    pub(super) fn note(&mut self, ticket: &Ticket, delivery: &str) -> io::Result<Sighting> {
        if let Some(known) = self.known.get(ticket) {
            let is_same = known == delivery;
            return Ok(if is_same { Sighting::SameDelivery } else { Sighting::OtherDelivery });
        }
        let line = Line { ticket: ticket.clone(), delivery: delivery.to_owned() };
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        self.file.write_all(&text)?;
        self.known.insert(line.ticket, line.delivery);
        Ok(Sighting::New)
    }
}

fn read(path: &Path) -> io::Result<HashMap<Ticket, String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HashMap::new()),
        Err(error) => return Err(error),
    };
    let mut known = HashMap::new();
    for line in BufReader::new(file).lines() {
        // A line that was cut by a kill names a ticket that never began.
        if let Ok(Line { ticket, delivery }) = serde_json::from_str(&line?) {
            known.insert(ticket, delivery);
        }
    }
    Ok(known)
}
