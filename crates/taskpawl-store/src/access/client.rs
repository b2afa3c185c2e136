//! The client side, inside a call: a store that forwards every request to the run.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the variants that are not listed, and future ones, are treated alike"
)]

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use taskpawl_model::command::{Answer, MutationRequest, Refusal, Request};
use taskpawl_model::task::PlanAccess;
use taskpawl_model::view::{Changes, View, ViewResult};

use super::channel::{Channel, Patience};
use super::socket::PlanSocket;
use super::view::RemoteView;
use super::wire::{
    AccessRequest, Handshake, Kind, MAX_ANSWER_BYTES, MAX_REQUEST_BYTES, MutationReport, ViewRequest,
    WireRefusal,
};
use crate::StoreError;
use crate::backend::{Backend, Reader, Watch};
use crate::store::{Outcome, Reply, Store};

/// Time limit for one answer. It is generous, because the run commits to disk before it answers.
const PATIENCE: Duration = Duration::from_secs(60);

const FIRST_POLL: Duration = Duration::from_millis(20);
const LAST_POLL: Duration = Duration::from_millis(200);

/// Idle connections that are kept for reuse; further ones are closed. A call rarely needs more than one.
const MAX_IDLE: usize = 1;

/// A store that is reached through the listener socket of a call.
#[derive(Debug)]
pub(crate) struct RemoteStore {
    plan_socket: PlanSocket,
    idle: Mutex<Vec<Connection>>,
}

/// A connection after its handshake.
#[derive(Debug)]
pub(super) struct Connection(Channel);

impl Connection {
    fn open(plan_socket: &PlanSocket) -> Result<Self, StoreError> {
        Ok(Self::begin(plan_socket)?.0)
    }

    fn begin(plan_socket: &PlanSocket) -> Result<(Self, Handshake), StoreError> {
        let channel = plan_socket.enter(patience()).map_err(connection_error)?.ok_or(StoreError::CallOver)?;
        let connection = Self(channel);
        let handshake = connection.ask(&AccessRequest::hello())?;
        Ok((connection, handshake))
    }

    fn send_request(&self, ask: &AccessRequest) -> Result<(), StoreError> {
        self.0.send(&ask.to_bytes(), patience()).map_err(connection_error)
    }

    fn ask<T: DeserializeOwned>(&self, ask: &AccessRequest) -> Result<T, StoreError> {
        self.send_request(ask)?;
        match self.receive_answer()? {
            (Kind::Value, bytes) => parsed(&bytes),
            (Kind::Part | Kind::Refused | Kind::Failed, _) => Err(protocol_error("unexpected kind of reply")),
        }
    }

    /// Receives one answer frame and splits off its kind. A `Failed` answer becomes an error.
    fn receive_answer(&self) -> Result<(Kind, Vec<u8>), StoreError> {
        let mut bytes = self
            .0
            .receive(MAX_ANSWER_BYTES, patience())
            .map_err(connection_error)?
            .ok_or(StoreError::CallOver)?;
        let kind = match bytes.first() {
            Some(0) => Kind::Value,
            Some(1) => Kind::Part,
            Some(2) => Kind::Refused,
            Some(3) => return Err(StoreError::OutOfReach { problem: parsed(&bytes[1..])? }),
            _ => return Err(protocol_error("unknown kind of reply")),
        };
        bytes.drain(..1);
        Ok((kind, bytes))
    }

    pub(super) fn view<T: DeserializeOwned>(&self, ask: ViewRequest) -> Result<T, StoreError> {
        self.ask(&AccessRequest::View(ask))
    }

    pub(super) fn view_list<T: DeserializeOwned>(
        &self,
        ask: ViewRequest,
        each: &mut dyn FnMut(T),
    ) -> Result<(), StoreError> {
        self.send_request(&AccessRequest::View(ask))?;
        loop {
            let (kind, bytes) = self.receive_answer()?;
            parsed::<Vec<T>>(&bytes)?.into_iter().for_each(&mut *each);
            match kind {
                Kind::Part => {}
                Kind::Value => return Ok(()),
                Kind::Refused | Kind::Failed => return Err(protocol_error("unexpected kind of reply")),
            }
        }
    }

    fn add(&self, addition: MutationRequest) -> Result<Outcome, StoreError> {
        let bytes = AccessRequest::Add(addition).to_bytes();
        if bytes.len() > MAX_REQUEST_BYTES {
            return Ok(Err(Box::new(oversized(bytes.len()))));
        }
        self.0.send(&bytes, patience()).map_err(connection_error)?;
        match self.receive_answer()? {
            (Kind::Value, bytes) => Ok(Ok(Answer::from(parsed::<MutationReport>(&bytes)?))),
            (Kind::Refused, bytes) => Ok(Err(Box::new(Refusal::from(parsed::<WireRefusal>(&bytes)?)))),
            (Kind::Part | Kind::Failed, _) => Err(protocol_error("unexpected kind of reply")),
        }
    }
}

impl PlanSocket {
    /// Asks the run for the access that this call has to its plan.
    ///
    /// # Errors
    /// The call is over, or the run does not answer.
    pub fn access(&self) -> Result<PlanAccess, StoreError> {
        Ok(Connection::begin(self)?.1.access)
    }
}

impl RemoteStore {
    pub(crate) fn new(plan_socket: PlanSocket) -> Self {
        Self { plan_socket, idle: Mutex::default() }
    }

    /// Uses an idle connection, or a new one, for one exchange. The connection is reused only if the exchange
    /// succeeds.
    fn with_connection<T>(
        &self,
        exchange: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = idle.map_or_else(|| Connection::open(&self.plan_socket), Ok)?;
        let result = exchange(&connection)?;
        // After an error, frames of the old answer may still be in the socket. The `?` above therefore drops
        // the connection.
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE {
            idle.push(connection);
        }
        Ok(result)
    }

    fn execute(&self, request: &Request) -> Result<Outcome, StoreError> {
        match MutationRequest::of(&request.command) {
            Ok(addition) => self.with_connection(|connection| connection.add(addition)),
            Err(refusal) => Ok(Err(Box::new(refusal))),
        }
    }
}

impl Store for RemoteStore {
    fn read(&self, look: &mut dyn FnMut(&dyn View) -> ViewResult<()>) -> Result<(), StoreError> {
        self.with_connection(|connection| {
            connection.send_request(&AccessRequest::Look)?;
            look(&RemoteView(connection)).map_err(StoreError::from_view)?;
            connection.send_request(&AccessRequest::Done)
        })
    }

    /// Blocks until the run has answered: this client has no thread that could wait instead.
    fn submit(&self, requests: Vec<Request>, reply: Reply) {
        reply(self.write(requests));
    }

    fn write(&self, requests: Vec<Request>) -> Result<Vec<Outcome>, StoreError> {
        requests.iter().map(|request| self.execute(request)).collect()
    }

    fn wait_change(&self, since: u64, timeout: Duration) -> Result<u64, StoreError> {
        let deadline = Instant::now().checked_add(timeout);
        let mut pause = FIRST_POLL;
        // The protocol has no push messages, so the client polls with growing pauses.
        loop {
            let revision = self.with_connection(|connection| connection.ask(&AccessRequest::Revision))?;
            let left =
                deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(Instant::now()));
            if revision > since || left.is_zero() {
                return Ok(revision);
            }
            std::thread::sleep(pause.min(left));
            pause = (pause * 2).min(LAST_POLL);
        }
    }

    fn warnings(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }
}

fn patience() -> Patience<'static> {
    Patience { until: Instant::now().checked_add(PATIENCE), stop: None }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
fn connection_error(error: io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => {
            StoreError::CallOver
        }
        io::ErrorKind::TimedOut => StoreError::OutOfReach { problem: "the run does not reply".to_owned() },
        _ => StoreError::OutOfReach { problem: error.to_string() },
    }
}

fn oversized(bytes: usize) -> Refusal {
    Refusal::Relayed {
        message: format!("a call may add at most {MAX_REQUEST_BYTES} bytes at once, not {bytes}"),
        hint: Some("add the tasks in several steps".into()),
        is_about_ids: false,
    }
}

fn parsed<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, StoreError> {
    serde_json::from_slice(bytes).map_err(|error| protocol_error(&error.to_string()))
}

fn protocol_error(problem: &str) -> StoreError {
    StoreError::OutOfReach { problem: format!("invalid reply from the run ({problem})") }
}

/// The backend behind `Location::Call`. All its operations fail, because only the run writes the store.
#[derive(Debug)]
pub(crate) struct NoBackend;

fn no_backend() -> StoreError {
    StoreError::OutOfReach { problem: "only the run can write it".to_owned() }
}

impl Backend for NoBackend {
    fn begin(&mut self) -> Result<(), StoreError> {
        Err(no_backend())
    }

    fn view(&self) -> &dyn View {
        unreachable!("BUG: a transaction was begun")
    }

    fn apply(&mut self, _: Changes) -> Result<u64, StoreError> {
        Err(no_backend())
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        Err(no_backend())
    }

    fn rollback(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl Reader for NoBackend {
    fn read(&self, _: &mut dyn FnMut(&dyn View) -> ViewResult<()>) -> Result<(), StoreError> {
        Err(no_backend())
    }

    fn watch(&self) -> Result<Box<dyn Watch + '_>, StoreError> {
        Err(no_backend())
    }
}
