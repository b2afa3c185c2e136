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
use taskpawl_model::{Command, Grow, Growth, PlanAccess, Refusal, Request, StartedCall};
use taskpawl_store::{
    Added, Addition, Ask, Broken, Channel, Door, DoorKeeper, MOST_REQUEST_BYTES, Patience, Said, StoreError,
    Welcome, door, show,
};
use taskpawl_tools::Vault;

use crate::faults::{self, Fault};
use crate::secrets::redactor;

/// Connections that one call may have open at once; further ones wait.
const MOST_GUESTS: usize = 4;

/// Tasks that one call may add.
const MOST_TASKS: u64 = 10_000;

/// Total size of all additions of one call, in bytes.
const MOST_ADDED_BYTES: u64 = 16 << 20;

/// Time limit for one read of the plan. The store cannot discard replaced data while a snapshot is open.
const LONGEST_LOOK: Duration = Duration::from_secs(10);

/// Time limit for receiving the rest of a message after its first byte, and for sending one.
const LONGEST_MESSAGE: Duration = Duration::from_secs(10);

/// Plan access of one start of a call. Dropping it ends the access.
#[derive(Debug)]
pub(crate) struct Broker {
    door: Door,
    desk: Arc<Desk>,
    /// Write end of a pipe whose read end every blocking wait also polls. Closing it wakes all of them.
    stop_pipe: Option<PipeWriter>,
    keeper: Option<JoinHandle<()>>,
}

/// State that all connections of a call share.
#[derive(Debug)]
struct Desk {
    /// Acts as the actor and run of the call, with the kind "agent".
    manager: Manager,
    /// Secrets to remove from additions: the call may have received them as arguments.
    vault: Vault,
    started: Start,
    welcome: Welcome,
    stopped: PipeReader,
    guests: Mutex<Guests>,
    /// Notified when a connection ends, and when all have to end.
    left: Condvar,
    /// Held during a whole addition, so that additions of one call run one after the other and the limits below hold.
    spent: Mutex<Spent>,
}

/// Identifies one start of one call. The store refuses additions of an older start.
#[derive(Debug, Clone)]
struct Start {
    task: taskpawl_model::Key,
    attempt: u32,
    number: u32,
}

#[derive(Debug, Default)]
struct Guests {
    count: usize,
    is_over: bool,
}

/// Part of the limits that the call has consumed.
#[derive(Debug, Default)]
struct Spent {
    tasks: u64,
    bytes: u64,
}

impl Broker {
    /// Opens the plan to a call that declares plan access; returns `None` for other calls. `manager` has to act as the
    /// run.
    pub(crate) fn open(manager: &Manager, vault: &Vault, started: &StartedCall) -> io::Result<Option<Self>> {
        let call = &started.call;
        let Some(access) = call.spec.plan_access else { return Ok(None) };
        let (door, keeper) = door()?;
        let (stopped, stop_pipe) = io::pipe()?;
        let desk = Arc::new(Desk {
            manager: manager.clone(),
            vault: vault.clone(),
            started: Start { task: started.key, attempt: started.attempt, number: call.body.attempts },
            welcome: Welcome { access, task: started.task.clone(), call: call.id.clone() },
            stopped,
            guests: Mutex::default(),
            left: Condvar::new(),
            spent: Mutex::default(),
        });
        let for_listener = Arc::clone(&desk);
        let thread = thread::Builder::new().name("taskpawl-plan".to_owned());
        let keeper = thread.spawn(move || keep(&for_listener, &keeper))?;
        Ok(Some(Self { door, desk, stop_pipe: Some(stop_pipe), keeper: Some(keeper) }))
    }

    /// Returns the descriptor that the tool inherits.
    pub(crate) fn descriptor(&self) -> Arc<OwnedFd> {
        self.door.descriptor()
    }

    /// Ends every connection, even if a program still holds the other end, and waits until all threads have finished.
    pub(crate) async fn close(mut self) {
        self.stop();
        if let Some(keeper) = self.keeper.take() {
            // The panic hook has already reported a panic of a connection thread; it affected only that connection.
            let _ = tokio::task::spawn_blocking(move || keeper.join()).await;
        }
    }

    fn stop(&mut self) {
        self.stop_pipe = None;
        lock(&self.desk.guests).is_over = true;
        self.desk.left.notify_all();
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Listener thread: offers one socket at a time and serves it as soon as a client has taken it and sends data.
fn keep(desk: &Arc<Desk>, keeper: &DoorKeeper) {
    let mut connections: Vec<JoinHandle<()>> = Vec::new();
    while desk.has_room() {
        let Ok(channel) = keeper.offer() else { break };
        // An offered socket counts as a connection only once data arrives: until then no client may have taken it.
        if channel.wait(desk.patience(None)).is_err() {
            break;
        }
        connections.retain(|talk| !talk.is_finished());
        lock(&desk.guests).count += 1;
        let guest = Guest { desk: Arc::clone(desk), channel };
        // If no thread can be spawned, the guest is dropped, which closes the socket: the client sees end of file.
        connections
            .extend(thread::Builder::new().name("taskpawl-plan".to_owned()).spawn(move || guest.talk()));
    }
    for talk in connections {
        let _ = talk.join();
    }
}

impl Desk {
    /// Waits until another connection may start; returns false once the access has ended.
    fn has_room(&self) -> bool {
        let guests = lock(&self.guests);
        let is_full = |guests: &mut Guests| guests.count >= MOST_GUESTS && !guests.is_over;
        let guests = self.left.wait_while(guests, is_full).unwrap_or_else(PoisonError::into_inner);
        !guests.is_over
    }

    fn leave(&self) {
        lock(&self.guests).count -= 1;
        self.left.notify_all();
    }

    /// Returns the limits for a blocking wait: the end of the call, and `time` if given.
    fn patience(&self, time: Option<Duration>) -> Patience<'_> {
        let until = time.and_then(|time| Instant::now().checked_add(time));
        Patience { until, stop: Some(self.stopped.as_fd()) }
    }

    /// Adds something to the plan. The outer error is a failure of the store, the inner one a refusal for the client.
    fn add(&self, addition: Addition, bytes: usize) -> Result<Result<Added, Box<Refusal>>, StoreError> {
        let mut spent = lock(&self.spent);
        let growth = match self.allowed(addition, bytes, &mut spent) {
            Ok(growth) => growth,
            Err(refusal) => return Ok(Err(Box::new(refusal))),
        };
        let tasks = tasks_in(&growth);
        let mut outcomes = self.manager.store().write(vec![self.request(growth)])?;
        Ok(outcomes.pop().expect("BUG: a store answers every request").map(|answer| {
            spent.tasks += tasks;
            Added::from(answer)
        }))
    }

    /// Checks everything that needs no read of the plan. The model checks the access again, with the rest, inside the
    /// transaction.
    fn allowed(&self, addition: Addition, bytes: usize, spent: &mut Spent) -> Result<Growth, Refusal> {
        if self.welcome.access != PlanAccess::Add && !faults::is_on(Fault::AddAnything) {
            let what = "this would change it".to_owned();
            return Err(Refusal::BeyondAccess { access: Some(self.welcome.access), what });
        }
        // Refused additions count as well, so that a call cannot keep the run busy with requests that fail.
        spent.bytes += bytes as u64;
        if spent.bytes > MOST_ADDED_BYTES {
            return Err(Refusal::AddedEnough { most: MOST_ADDED_BYTES, what: "bytes" });
        }
        let growth = self.without_secrets(addition)?.into_growth()?;
        if spent.tasks + tasks_in(&growth) > MOST_TASKS {
            return Err(Refusal::AddedEnough { most: MOST_TASKS, what: "tasks" });
        }
        Ok(growth)
    }

    /// Removes secret values from an addition, as from every result of a call.
    fn without_secrets(&self, addition: Addition) -> Result<Addition, Refusal> {
        let invalid = |error: serde_json::Error| Refusal::InvalidField {
            field: "tasks".to_owned(),
            problem: format!("with its secrets taken out it cannot be read ({error})"),
        };
        // Redaction may replace a whole string by a placeholder, so the result has to pass the parser again.
        let mut value = serde_json::to_value(addition).map_err(invalid)?;
        redactor(&self.vault).value(&mut value);
        serde_json::from_value(value).map_err(invalid)
    }

    fn request(&self, growth: Growth) -> Request {
        if faults::is_on(Fault::AddAnything)
            && let Some(command) = as_command(&growth)
        {
            return self.manager.request(command);
        }
        let Start { task, attempt, number } = self.started;
        let call = self.welcome.call.clone();
        self.manager.request(Command::Grow(Box::new(Grow { task, attempt, call, start: number, growth })))
    }
}

/// Returns the equivalent command of a person, which is not bound to the access of the call. Used by the fault
/// injection only.
fn as_command(growth: &Growth) -> Option<Command> {
    Some(match growth.clone() {
        Growth::Create(task) => Command::Create(task),
        Growth::AddCall { id, call } => Command::AddCall { id, call },
        Growth::AddDependency { id, on } => Command::AddDependency { id, on },
        Growth::Note { id, text } => Command::Note { id, text },
        Growth::Join(_) => return None,
    })
}

fn tasks_in(growth: &Growth) -> u64 {
    match growth {
        Growth::Create(_) => 1,
        Growth::Join(plan) => plan.tasks.len() as u64,
        Growth::AddCall { .. } | Growth::AddDependency { .. } | Growth::Note { .. } => 0,
    }
}

/// One connection.
struct Guest {
    desk: Arc<Desk>,
    channel: Channel,
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.desk.leave();
    }
}

impl Guest {
    fn talk(&self) {
        let problem = match self.serve() {
            Err(Broken::Gone(error)) if error.kind() == io::ErrorKind::TimedOut => {
                format!("it took longer than {} s over one look or message", LONGEST_LOOK.as_secs())
            }
            Ok(()) | Err(Broken::Gone(_)) => return,
            Err(Broken::Store(error)) => format!("the store of the run failed: {error}"),
            Err(error) => error.to_string(),
        };
        // The error is ignored: a client that has closed the socket cannot be told.
        let _ = self.say(&Said::Failed(&problem));
    }

    fn serve(&self) -> Result<(), Broken> {
        match self.next()? {
            Some((Ask::Hello { .. }, _)) => self.say(&Said::Welcome(&self.desk.welcome))?,
            Some(_) => return Err(senseless("a conversation begins with `hello`")),
            None => return Ok(()),
        }
        while let Some((ask, bytes)) = self.next()? {
            match ask {
                Ask::Look => self.show()?,
                Ask::Revision => {
                    let revision = self.desk.manager.revision().map_err(Broken::Store)?;
                    self.say(&Said::Revision(revision))?;
                }
                Ask::Add(addition) => match self.desk.add(addition, bytes).map_err(Broken::Store)? {
                    Ok(added) => self.say(&Said::Added(&added))?,
                    Err(refusal) => self.say(&Said::Refused(&refusal))?,
                },
                Ask::Hello { .. } | Ask::Done | Ask::View(_) => {
                    return Err(senseless("this has no place outside of a look at the plan"));
                }
            }
        }
        Ok(())
    }

    fn show(&self) -> Result<(), Broken> {
        show(&**self.desk.manager.store(), &self.channel, self.desk.patience(Some(LONGEST_LOOK)))
    }

    /// Waits for the next request without time limit while the call runs; returns it with its size in bytes.
    fn next(&self) -> Result<Option<(Ask, usize)>, Broken> {
        self.channel.wait(self.desk.patience(None)).map_err(Broken::Gone)?;
        let patience = self.desk.patience(Some(LONGEST_MESSAGE));
        let bytes = self.channel.receive(MOST_REQUEST_BYTES, patience).map_err(too_long)?;
        let Some(bytes) = bytes else { return Ok(None) };
        let ask = Ask::read(&bytes).map_err(|problem| Broken::Senseless { problem })?;
        Ok(Some((ask, bytes.len())))
    }

    fn say(&self, said: &Said<'_>) -> Result<(), Broken> {
        self.channel.send(&said.to_bytes(), self.desk.patience(Some(LONGEST_MESSAGE))).map_err(Broken::Gone)
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
