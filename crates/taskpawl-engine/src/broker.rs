//! What a call reaches of its plan from inside: whom it is shown to, and what it may add.
//!
//! The store behind a door says what is asked; who asks, in which run and for which call is known here and never taken from there.
//! Each conversation has a thread of its own: a look at the plan holds one moment of the store for as long as somebody looks.

#![expect(clippy::result_large_err, reason = "a refusal is rare, and is boxed where it is kept")]

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

/// How many conversations one call has at once; who comes later waits.
const MOST_GUESTS: usize = 4;

/// How many tasks one call adds.
const MOST_TASKS: u64 = 10_000;

/// How much one call says in all when it adds something, in bytes.
const MOST_ADDED_BYTES: u64 = 16 << 20;

/// How long one look may take: for as long the store cannot forget what it replaces.
const LONGEST_LOOK: Duration = Duration::from_secs(10);

/// How long a message may take once it has begun.
const LONGEST_MESSAGE: Duration = Duration::from_secs(10);

/// The access of one start of a call. Nothing reaches the plan through it once it is dropped.
#[derive(Debug)]
pub(crate) struct Broker {
    door: Door,
    desk: Arc<Desk>,
    /// Closed to end everything: whoever waits also waits for that.
    bell: Option<PipeWriter>,
    keeper: Option<JoinHandle<()>>,
}

/// What all conversations of a call share.
#[derive(Debug)]
struct Desk {
    /// Acts in the name of the call's actor and run, and as an agent.
    manager: Manager,
    /// What must not come into the store: the call may have been given it.
    vault: Vault,
    started: Start,
    welcome: Welcome,
    stopped: PipeReader,
    guests: Mutex<Guests>,
    /// Rung when a conversation ends, and when all are to.
    left: Condvar,
    /// Locked for as long as something is added: what a call adds takes turns.
    spent: Mutex<Spent>,
}

/// Which start of which call it is.
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

/// What a call has used up.
#[derive(Debug, Default)]
struct Spent {
    tasks: u64,
    bytes: u64,
}

impl Broker {
    /// Opens the plan to a call that declares access; `None` for others. `manager` acts in the name of the run.
    pub(crate) fn open(manager: &Manager, vault: &Vault, started: &StartedCall) -> io::Result<Option<Self>> {
        let call = &started.call;
        let Some(access) = call.spec.plan_access else { return Ok(None) };
        let (door, keeper) = door()?;
        let (stopped, bell) = io::pipe()?;
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
        let at_door = Arc::clone(&desk);
        let thread = thread::Builder::new().name("taskpawl-plan".to_owned());
        let keeper = thread.spawn(move || keep(&at_door, &keeper))?;
        Ok(Some(Self { door, desk, bell: Some(bell), keeper: Some(keeper) }))
    }

    /// Returns what the call gets.
    pub(crate) fn descriptor(&self) -> Arc<OwnedFd> {
        self.door.descriptor()
    }

    /// Ends every conversation, whatever still holds the other side, and waits for that.
    pub(crate) async fn close(mut self) {
        self.stop();
        if let Some(keeper) = self.keeper.take() {
            // A panic was reported where it happened, and took nothing with it but its conversation.
            let _ = tokio::task::spawn_blocking(move || keeper.join()).await;
        }
    }

    fn stop(&mut self) {
        self.bell = None;
        lock(&self.desk.guests).is_over = true;
        self.desk.left.notify_all();
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The thread at the door: puts a channel into it, and begins a conversation when somebody has taken it and speaks.
fn keep(desk: &Arc<Desk>, keeper: &DoorKeeper) {
    let mut talks: Vec<JoinHandle<()>> = Vec::new();
    while desk.has_room() {
        let Ok(channel) = keeper.offer() else { break };
        if channel.wait(desk.patience(None)).is_err() {
            break;
        }
        talks.retain(|talk| !talk.is_finished());
        lock(&desk.guests).count += 1;
        let guest = Guest { desk: Arc::clone(desk), channel };
        // Without a thread the guest is dropped, and finds that the conversation is over.
        talks.extend(thread::Builder::new().name("taskpawl-plan".to_owned()).spawn(move || guest.talk()));
    }
    for talk in talks {
        let _ = talk.join();
    }
}

impl Desk {
    /// Waits until one more conversation may begin; returns false when none will.
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

    /// Returns how long to wait for something: until the end of the call, or less.
    fn patience(&self, time: Option<Duration>) -> Patience<'_> {
        let until = time.and_then(|time| Instant::now().checked_add(time));
        Patience { until, stop: Some(self.stopped.as_fd()) }
    }

    /// Adds something to the plan, or says why not.
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

    /// Checks what needs no look at the plan: the rules check the rest, and this once more.
    fn allowed(&self, addition: Addition, bytes: usize, spent: &mut Spent) -> Result<Growth, Refusal> {
        if self.welcome.access != PlanAccess::Add && !faults::is_on(Fault::AddAnything) {
            let what = "this would change it".to_owned();
            return Err(Refusal::BeyondAccess { access: Some(self.welcome.access), what });
        }
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

    /// Takes secrets out of what is to be added, as out of every result.
    fn without_secrets(&self, addition: Addition) -> Result<Addition, Refusal> {
        let invalid = |error: serde_json::Error| Refusal::InvalidField {
            field: "tasks".to_owned(),
            problem: format!("with its secrets taken out it cannot be read ({error})"),
        };
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

/// Returns the command that a person would give for the same: it is not bound to what the call may do.
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

/// One conversation.
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
        // Who does not listen any more needs not be told.
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

    /// Waits for the next request, for as long as the call lasts; returns it with its size.
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

/// What is behind these locks is a count, and never half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
