//! Connections that have not sent the token yet. Few of them are kept, for a short time, so that they cannot lock out
//! clients with the token.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// Maximum number of connections without the token. One more closes the oldest.
pub const MAX_PENDING: usize = 64;

/// Time limit for the first request with the token.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(3);

/// Maximum number of connections with the token. Each takes a descriptor, and a process usually has 1,024.
pub(crate) const MAX_AUTHORIZED: usize = 256;

/// Counts the connections of a server.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    /// Connections without the token, the oldest first.
    pending: Mutex<VecDeque<CancellationToken>>,
    authorized: AtomicUsize,
}

impl Connections {
    fn pending(&self) -> MutexGuard<'_, VecDeque<CancellationToken>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a new connection. Closes the oldest one without the token if there are too many.
    pub(crate) fn admit(self: &Arc<Self>) -> Place {
        let closed = CancellationToken::new();
        let mut pending = self.pending();
        pending.push_back(closed.clone());
        if pending.len() > MAX_PENDING
            && let Some(oldest) = pending.pop_front()
        {
            oldest.cancel();
        }
        Place { connections: Arc::clone(self), closed, standing: Mutex::new(Standing::Pending) }
    }

    /// Returns the number of connections without the token.
    #[cfg(test)]
    pub(crate) fn count_pending(&self) -> usize {
        self.pending().len()
    }
}

/// The state of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Pending,
    Authorized,
}

/// The slot of one connection, which is released on drop.
#[derive(Debug)]
pub struct Place {
    connections: Arc<Connections>,
    /// Fires when another connection needs the slot.
    closed: CancellationToken,
    standing: Mutex<Standing>,
}

impl Place {
    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the connection as authorized. Returns whether it may stay: these connections are limited as well.
    pub fn authorize(&self) -> bool {
        let mut standing = self.standing();
        if *standing == Standing::Authorized {
            return true;
        }
        let is_free = |count: usize| (count < MAX_AUTHORIZED).then_some(count + 1);
        let counted = self.connections.authorized.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_free);
        if counted.is_ok() {
            self.leave_pending();
            *standing = Standing::Authorized;
        }
        counted.is_ok()
    }

    /// Waits until the connection must be closed: its slot is needed, or the token did not arrive in time.
    pub(crate) async fn over(&self) {
        tokio::select! {
            () = self.closed.cancelled() => {}
            () = tokio::time::sleep(HEAD_TIMEOUT) => {}
        }
        // Authorized connections stay open; later heads have a timeout of their own.
        if *self.standing() == Standing::Authorized {
            std::future::pending::<()>().await;
        }
    }

    fn leave_pending(&self) {
        self.connections.pending().retain(|other| *other != self.closed);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        match *self.standing() {
            Standing::Pending => self.leave_pending(),
            Standing::Authorized => {
                self.connections.authorized.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_oldest_without_the_token_makes_room() {
        let connections = Arc::new(Connections::default());
        let mut places: Vec<Place> = (0..MAX_PENDING).map(|_| connections.admit()).collect();
        assert!(places[0].authorize());
        // The authorized connection has left one slot free.
        places.push(connections.admit());
        assert!(places.iter().all(|place| !place.closed.is_cancelled()));
        places.push(connections.admit());
        let closed: Vec<usize> = (0..places.len()).filter(|at| places[*at].closed.is_cancelled()).collect();
        assert_eq!(closed, [1]);
        places[1].over().await;
        assert_eq!(connections.count_pending(), MAX_PENDING);
        drop(places);
        assert_eq!(connections.count_pending(), 0);
        assert_eq!(connections.authorized.load(Ordering::Relaxed), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_over_in_time_and_the_token_ends_it() {
        let connections = Arc::new(Connections::default());
        let (silent, holder) = (connections.admit(), connections.admit());
        assert!(holder.authorize() && holder.authorize(), "once is enough, and twice is no harm");
        let begin = tokio::time::Instant::now();
        silent.over().await;
        assert_eq!(begin.elapsed(), HEAD_TIMEOUT);
        let later = tokio::time::timeout(Duration::from_hours(1), holder.over()).await;
        assert!(later.is_err(), "a holder of the token stays");
    }

    #[test]
    fn holders_of_the_token_are_bounded_too() {
        let connections = Arc::new(Connections::default());
        let mut places: Vec<Place> = (0..MAX_AUTHORIZED).map(|_| connections.admit()).collect();
        assert!(places.iter().all(Place::authorize));
        let one_more = connections.admit();
        assert!(!one_more.authorize());
        places.pop();
        assert!(one_more.authorize());
    }
}
