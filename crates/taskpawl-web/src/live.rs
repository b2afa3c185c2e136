//! One thread follows the store for all clients, and each client gets at most ten messages a second.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use hyper::body::Bytes;
use taskpawl::{Error, Manager};
use taskpawl_http::Answer;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::answer::{EventBody, Problem};
use crate::board::{Board, Delta};
use crate::request::Query;

/// Minimum time between two messages to a client.
const PACE: Duration = Duration::from_millis(100);

/// Time between two signs of life, so that a client notices a connection that is gone.
const BEAT: Duration = Duration::from_secs(15);

/// Maximum time that the thread waits for a change. A change ends the wait at once.
const LOOK: Duration = Duration::from_secs(1);

/// Minimum time between two reads of the thread, while the store changes all the time.
const READ_PACE: Duration = Duration::from_millis(40);

/// Messages that wait for a slow client.
const QUEUE: usize = 4;

/// The state that the clients share.
#[derive(Debug, Clone)]
pub(crate) struct Hub {
    board: Arc<RwLock<Board>>,
    /// Revision of the board. The sender lives in the thread.
    revision: watch::Receiver<u64>,
}

impl Hub {
    /// Reads the store, and starts the thread that follows it until `stop` fires. Blocks.
    ///
    /// # Errors
    /// The store cannot be read, or no thread can be started.
    pub(crate) fn start(manager: Manager, stop: CancellationToken) -> Result<Self, Error> {
        // Random, so that a client notices that another server answers on the same port.
        let generation = uuid::Uuid::new_v4().as_u64_pair().0 >> 12;
        let board = manager.read(|view| Ok(Board::read(view, generation)?))?;
        let (sender, revision) = watch::channel(board.revision());
        let board = Arc::new(RwLock::new(board));
        let mut follower = Follower { manager, board: Arc::clone(&board), generation, sender };
        let run = move || follower.run(&stop);
        let started = std::thread::Builder::new().name("taskpawl-page".to_owned()).spawn(run);
        // Without a thread nothing works; the same resources fail elsewhere a moment later.
        started.expect("the system can start a thread");
        Ok(Self { board, revision })
    }

    pub(crate) fn board(&self) -> RwLockReadGuard<'_, Board> {
        self.board.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the stream of changes after the revision that a client has. It ends when its token is no longer valid.
    ///
    /// # Errors
    /// The query has no valid numbers.
    pub(crate) fn events(
        &self,
        query: &Query,
        tasks: &TaskTracker,
        stop: CancellationToken,
        is_current: impl Fn() -> bool + Send + 'static,
    ) -> Result<Answer, Problem> {
        let generation = query.number("generation")?.unwrap_or_default();
        let revision = query.number("revision")?.unwrap_or_default();
        let (sender, events) = mpsc::channel(QUEUE);
        let client = Client { hub: self.clone(), generation, revision, sender };
        tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = client.run(is_current) => {}
            }
        });
        Ok(EventBody::answer(events))
    }
}

struct Follower {
    manager: Manager,
    board: Arc<RwLock<Board>>,
    generation: u64,
    sender: watch::Sender<u64>,
}

impl Follower {
    fn run(&mut self, stop: &CancellationToken) {
        while !stop.is_cancelled() {
            let begin = Instant::now();
            // The next read may succeed: the store may be locked for a while. Every request reads the store by itself, and
            // shows the error until then.
            if self.step().is_err() {
                std::thread::sleep(LOOK);
            }
            // A large plan that changes its structure all the time is read again and again; that takes at most half of a core.
            let least = if begin.elapsed() > LOOK { Duration::ZERO } else { begin.elapsed() };
            std::thread::sleep(READ_PACE.max(least.min(LOOK) / 2));
        }
    }

    fn step(&mut self) -> Result<(), Error> {
        let known = self.board.read().unwrap_or_else(PoisonError::into_inner).revision();
        if self.manager.store().wait_change(known, LOOK)? <= known {
            return Ok(());
        }
        let is_followed = self
            .manager
            .read(|view| Ok(self.board.write().unwrap_or_else(PoisonError::into_inner).follow(view)?))?;
        if !is_followed {
            self.generation += 1;
            let board = self.manager.read(|view| Ok(Board::read(view, self.generation)?))?;
            *self.board.write().unwrap_or_else(PoisonError::into_inner) = board;
        }
        let revision = self.board.read().unwrap_or_else(PoisonError::into_inner).revision();
        self.sender.send_replace(revision);
        Ok(())
    }
}

struct Client {
    hub: Hub,
    generation: u64,
    revision: u64,
    sender: mpsc::Sender<Bytes>,
}

impl Client {
    async fn run(mut self, is_current: impl Fn() -> bool) {
        let mut changed = self.hub.revision.clone();
        changed.mark_changed();
        loop {
            let message = tokio::select! {
                is_open = changed.changed() => {
                    if is_open.is_err() {
                        return;
                    }
                    let delta = self.hub.board().since(self.generation, self.revision);
                    (self.generation, self.revision) = (delta.generation, delta.revision);
                    message(&delta)
                }
                () = tokio::time::sleep(BEAT) => Bytes::from_static(b": alive\n\n"),
            };
            if !is_current() || self.sender.send(message).await.is_err() {
                return;
            }
            tokio::time::sleep(PACE).await;
        }
    }
}

fn message(delta: &Delta) -> Bytes {
    let data = serde_json::to_string(delta).expect("BUG: a change is JSON");
    Bytes::from(format!("event: change\nid: {}\ndata: {data}\n\n", delta.revision))
}
