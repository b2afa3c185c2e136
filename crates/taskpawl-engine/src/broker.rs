//! Gives a running call access to its own plan: reading it, and adding to it if the call may.
//!
//! The messages that arrive on the socket only say what to read or add. The identity of the caller (actor, run, task,
//! call) is fixed here when the call starts and is never read from the socket, so a call cannot impersonate another
//! one. Each connection is served by its own thread, because a read of the plan holds a store snapshot open, and
//! blocks, for as long as the client reads.

#![expect(clippy::result_large_err, reason = "a refusal is rare, and is boxed before it is stored")]

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use taskpawl_manager::Manager;
use taskpawl_model::command::MutationRequest;
use taskpawl_model::command::{CallMutation, Command, PlanMutation, Refusal, Request, StartedCall};
use taskpawl_model::task::PlanAccess;
use taskpawl_store::{
    Acceptor, AccessReply, AccessRequest, Broken, Channel, Handshake, MAX_REQUEST_BYTES, MutationReport,
    Patience, PlanSocket, StoreError, plan_socket, show,
};
use taskpawl_tools::Vault;

use crate::faults::{self, Fault};
use crate::secrets::redactor;

/// Connections that one call may have open at once; further ones wait.
const MAX_CONNECTIONS: usize = 4;

/// Tasks that one call may add.
const MAX_TASKS: u64 = 10_000;

/// Total size of all additions of one call, in bytes.
const MAX_ADDED_BYTES: u64 = 16 << 20;

/// Time limit for one read of the plan. The store cannot discard replaced data while a snapshot is open.
const LONGEST_LOOK: Duration = Duration::from_secs(10);

/// Time limit for receiving the rest of a message after its first byte, and for sending one.
const LONGEST_MESSAGE: Duration = Duration::from_secs(10);

/// Plan access of one start of a call. Dropping it ends the access.
#[derive(Debug)]
pub(crate) struct Broker {
    plan_socket: PlanSocket,
    access: Arc<CallAccess>,
    /// Write end of a pipe whose read end every blocking wait also polls. Closing it wakes all of them.
    stop_pipe: Option<PipeWriter>,
    acceptor_thread: Option<JoinHandle<()>>,
}

/// State that all connections of a call share.
#[derive(Debug)]
struct CallAccess {
    /// Acts as the actor and run of the call, with the kind "agent".
    manager: Manager,
    /// Secrets to remove from additions: the call may have received them as arguments.
    vault: Vault,
    started: Start,
    handshake: Handshake,
    stopped: PipeReader,
    connections: Mutex<Connections>,
    /// Notified when a connection ends, and when all have to end.
    left: Condvar,
    /// Held during a whole addition, so that additions of one call run one after the other and the limits below hold.
    spent: Mutex<MutationUsage>,
}

/// Identifies one start of one call. The store refuses additions of an older start.
#[derive(Debug, Clone)]
struct Start {
    task: taskpawl_model::value::Key,
    attempt: u32,
    number: u32,
}

#[derive(Debug, Default)]
struct Connections {
    count: usize,
    is_over: bool,
}

/// Part of the limits that the call has consumed.
#[derive(Debug, Default)]
struct MutationUsage {
    tasks: u64,
    bytes: u64,
}

impl Broker {
    /// Opens the plan to a call that declares plan access; returns `None` for other calls. `manager` has to act as the
    /// run.
    pub(crate) fn open(manager: &Manager, vault: &Vault, started: &StartedCall) -> io::Result<Option<Self>> {
        let call = &started.call;
        let Some(access) = call.spec.plan_access else { return Ok(None) };
        let (plan_socket, acceptor) = plan_socket()?;
        let (stopped, stop_pipe) = io::pipe()?;
        let access = Arc::new(CallAccess {
            manager: manager.clone(),
            vault: vault.clone(),
            started: Start { task: started.key, attempt: started.attempt, number: call.body.attempts },
            handshake: Handshake { access, task: started.task.clone(), call: call.id.clone() },
            stopped,
            connections: Mutex::default(),
            left: Condvar::new(),
            spent: Mutex::default(),
        });
        let for_listener = Arc::clone(&access);
        let thread = thread::Builder::new().name("taskpawl-plan".to_owned());
        let acceptor_thread = thread.spawn(move || accept(&for_listener, &acceptor))?;
        Ok(Some(Self {
            plan_socket,
            access,
            stop_pipe: Some(stop_pipe),
            acceptor_thread: Some(acceptor_thread),
        }))
    }

    /// Returns the descriptor that the tool inherits.
    pub(crate) fn descriptor(&self) -> Arc<OwnedFd> {
        self.plan_socket.descriptor()
    }

    /// Ends every connection, even if a program still holds the other end, and waits until all threads have finished.
    pub(crate) async fn close(mut self) {
        self.stop();
        if let Some(acceptor_thread) = self.acceptor_thread.take() {
            // The panic hook has already reported a panic of a connection thread; it affected only that connection.
            let _ = tokio::task::spawn_blocking(move || acceptor_thread.join()).await;
        }
    }

    fn stop(&mut self) {
        self.stop_pipe = None;
        lock(&self.access.connections).is_over = true;
        self.access.left.notify_all();
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Listener thread: offers one socket at a time and serves it as soon as a client has taken it and sends data.
fn accept(access: &Arc<CallAccess>, acceptor: &Acceptor) {
    let mut connections: Vec<JoinHandle<()>> = Vec::new();
    while access.has_room() {
        let Ok(channel) = acceptor.offer() else { break };
        // An offered socket counts as a connection only once data arrives: until then no client may have taken it.
        if channel.wait(access.patience(None)).is_err() {
            break;
        }
        connections.retain(|talk| !talk.is_finished());
        lock(&access.connections).count += 1;
        let connection = Connection { access: Arc::clone(access), channel };
        // If no thread can be spawned, the guest is dropped, which closes the socket: the client sees end of file.
        connections
            .extend(thread::Builder::new().name("taskpawl-plan".to_owned()).spawn(move || connection.talk()));
    }
    for talk in connections {
        let _ = talk.join();
    }
}

impl CallAccess {
    /// Waits until another connection may start; returns false once the access has ended.
    fn has_room(&self) -> bool {
        let connections = lock(&self.connections);
        let is_full =
            |connections: &mut Connections| connections.count >= MAX_CONNECTIONS && !connections.is_over;
        let connections = self.left.wait_while(connections, is_full).unwrap_or_else(PoisonError::into_inner);
        !connections.is_over
    }

    fn leave(&self) {
        lock(&self.connections).count -= 1;
        self.left.notify_all();
    }

    /// Returns the limits for a blocking wait: the end of the call, and `time` if given.
    fn patience(&self, time: Option<Duration>) -> Patience<'_> {
        let until = time.and_then(|time| Instant::now().checked_add(time));
        Patience { until, stop: Some(self.stopped.as_fd()) }
    }

    /// Adds something to the plan. The outer error is a failure of the store, the inner one a refusal for the client.
    fn add(
        &self,
        addition: MutationRequest,
        bytes: usize,
    ) -> Result<Result<MutationReport, Box<Refusal>>, StoreError> {
        let mut spent = lock(&self.spent);
        let mutation = match self.allowed(addition, bytes, &mut spent) {
            Ok(mutation) => mutation,
            Err(refusal) => return Ok(Err(Box::new(refusal))),
        };
        let tasks = tasks_in(&mutation);
        let mut outcomes = self.manager.store().write(vec![self.request(mutation)])?;
        Ok(outcomes.pop().expect("BUG: a store answers every request").map(|answer| {
            spent.tasks += tasks;
            MutationReport::from(answer)
        }))
    }

    /// Checks everything that needs no read of the plan. The model checks the access again, with the rest, inside the
    /// transaction.
    fn allowed(
        &self,
        addition: MutationRequest,
        bytes: usize,
        spent: &mut MutationUsage,
    ) -> Result<PlanMutation, Refusal> {
        if self.handshake.access != PlanAccess::Add && !faults::is_on(Fault::AddAnything) {
            let what = "this command would change it".to_owned();
            return Err(Refusal::BeyondAccess { access: Some(self.handshake.access), what });
        }
        // Refused additions count as well, so that a call cannot keep the run busy with requests that fail.
        spent.bytes += bytes as u64;
        if spent.bytes > MAX_ADDED_BYTES {
            return Err(Refusal::AddedEnough { most: MAX_ADDED_BYTES, what: "bytes" });
        }
        let mutation = self.without_secrets(addition)?.into_mutation()?;
        if spent.tasks + tasks_in(&mutation) > MAX_TASKS {
            return Err(Refusal::AddedEnough { most: MAX_TASKS, what: "tasks" });
        }
        Ok(mutation)
    }

    /// Removes secret values from an addition, as from every result of a call.
    fn without_secrets(&self, addition: MutationRequest) -> Result<MutationRequest, Refusal> {
        let invalid = |error: serde_json::Error| Refusal::InvalidField {
            field: "tasks".to_owned(),
            problem: format!("it is invalid after the removal of secrets ({error})"),
        };
        // Redaction may replace a whole string by a placeholder, so the result has to pass the parser again.
        let mut value = serde_json::to_value(addition).map_err(invalid)?;
        redactor(&self.vault).value(&mut value);
        serde_json::from_value(value).map_err(invalid)
    }

    fn request(&self, mutation: PlanMutation) -> Request {
        if faults::is_on(Fault::AddAnything)
            && let Some(command) = as_command(&mutation)
        {
            return self.manager.request(command);
        }
        let Start { task, attempt, number } = self.started;
        let call = self.handshake.call.clone();
        self.manager.request(Command::Mutate(Box::new(CallMutation {
            task,
            attempt,
            call,
            start: number,
            mutation,
        })))
    }
}

/// Returns the equivalent command of a person, which is not bound to the access of the call. Used by the fault
/// injection only.
fn as_command(mutation: &PlanMutation) -> Option<Command> {
    Some(match mutation.clone() {
        PlanMutation::Create(task) => Command::Create(task),
        PlanMutation::AddCall { id, call } => Command::AddCall { id, call },
        PlanMutation::AddDependency { id, on } => Command::AddDependency { id, on },
        PlanMutation::Note { id, text } => Command::Note { id, text },
        PlanMutation::Join(_) => return None,
    })
}

fn tasks_in(mutation: &PlanMutation) -> u64 {
    match mutation {
        PlanMutation::Create(_) => 1,
        PlanMutation::Join(plan) => plan.tasks.len() as u64,
        PlanMutation::AddCall { .. } | PlanMutation::AddDependency { .. } | PlanMutation::Note { .. } => 0,
    }
}

/// One connection.
struct Connection {
    access: Arc<CallAccess>,
    channel: Channel,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.access.leave();
    }
}

impl Connection {
    fn talk(&self) {
        let problem = match self.serve() {
            Err(Broken::Gone(error)) if error.kind() == io::ErrorKind::TimedOut => {
                format!("one view or message took longer than {} s", LONGEST_LOOK.as_secs())
            }
            Ok(()) | Err(Broken::Gone(_)) => return,
            Err(Broken::Store(error)) => format!("the store of the run failed: {error}"),
            Err(error) => error.to_string(),
        };
        // The error is ignored: a client that has closed the socket cannot be told.
        let _ = self.say(&AccessReply::Failed(&problem));
    }

    fn serve(&self) -> Result<(), Broken> {
        match self.next()? {
            Some((AccessRequest::Hello { .. }, _)) => {
                self.say(&AccessReply::Handshake(&self.access.handshake))?;
            }
            Some(_) => return Err(senseless("a connection must begin with `hello`")),
            None => return Ok(()),
        }
        while let Some((ask, bytes)) = self.next()? {
            match ask {
                AccessRequest::Look => self.show()?,
                AccessRequest::Revision => {
                    let revision = self.access.manager.revision().map_err(Broken::Store)?;
                    self.say(&AccessReply::Revision(revision))?;
                }
                AccessRequest::Add(addition) => {
                    match self.access.add(addition, bytes).map_err(Broken::Store)? {
                        Ok(added) => self.say(&AccessReply::MutationReport(&added))?,
                        Err(refusal) => self.say(&AccessReply::Refused(&refusal))?,
                    }
                }
                AccessRequest::Hello { .. } | AccessRequest::Done | AccessRequest::View(_) => {
                    return Err(senseless("this request is only allowed inside a view of the plan"));
                }
            }
        }
        Ok(())
    }

    fn show(&self) -> Result<(), Broken> {
        show(&**self.access.manager.store(), &self.channel, self.access.patience(Some(LONGEST_LOOK)))
    }

    /// Waits for the next request without time limit while the call runs; returns it with its size in bytes.
    fn next(&self) -> Result<Option<(AccessRequest, usize)>, Broken> {
        self.channel.wait(self.access.patience(None)).map_err(Broken::Gone)?;
        let patience = self.access.patience(Some(LONGEST_MESSAGE));
        let bytes = self.channel.receive(MAX_REQUEST_BYTES, patience).map_err(too_long)?;
        let Some(bytes) = bytes else { return Ok(None) };
        let ask = AccessRequest::read(&bytes).map_err(|problem| Broken::Senseless { problem })?;
        Ok(Some((ask, bytes.len())))
    }

    fn say(&self, said: &AccessReply<'_>) -> Result<(), Broken> {
        self.channel.send(&said.to_bytes(), self.access.patience(Some(LONGEST_MESSAGE))).map_err(Broken::Gone)
    }
}

fn too_long(error: io::Error) -> Broken {
    if error.kind() == io::ErrorKind::InvalidData {
        senseless(&error.to_string())
    } else {
        Broken::Gone(error)
    }
}

fn senseless(problem: &str) -> Broken {
    Broken::Senseless { problem: problem.to_owned() }
}

/// Locks a mutex and ignores poisoning: these mutexes guard plain counters, which a panic cannot leave half updated.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
