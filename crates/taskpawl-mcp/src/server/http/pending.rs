//! Connections that have not shown the token yet: few of them are held, and none for long, so that they keep nobody else waiting.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// How many connections without the token are held; when another one comes, the oldest of them is closed.
pub(super) const MAX_PENDING: usize = 64;

/// How long a connection may take to send the head of a request with the token.
pub(super) const HEAD_TIMEOUT: Duration = Duration::from_secs(3);

/// How many connections with the token are held. Every one takes a descriptor, of which a process has 1,024 as a rule.
pub(super) const MAX_AUTHORIZED: usize = 256;

/// The connections of a server, as far as they are counted.
#[derive(Debug, Default)]
pub(super) struct Connections {
    /// Those without the token, the oldest first.
    pending: Mutex<VecDeque<CancellationToken>>,
    authorized: AtomicUsize,
}

impl Connections {
    fn pending(&self) -> MutexGuard<'_, VecDeque<CancellationToken>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a new connection, and closes the oldest one without the token where there are too many.
    pub(super) fn admit(self: &Arc<Self>) -> Place {
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

    /// Returns how many connections without the token there are.
    #[cfg(test)]
    pub(super) fn count_pending(&self) -> usize {
        self.pending().len()
    }
}

/// What a connection has shown so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Pending,
    Authorized,
}

/// The place of one connection, which is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    connections: Arc<Connections>,
    /// Fires when another connection needs the place.
    closed: CancellationToken,
    standing: Mutex<Standing>,
}

impl Place {
    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the connection has shown the token. Returns whether it may stay: there is an end to those, too.
    pub(super) fn authorize(&self) -> bool {
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

    /// Waits until the connection has to be closed: its place is needed, or the token did not come in time.
    pub(super) async fn over(&self) {
        tokio::select! {
            () = self.closed.cancelled() => {}
            () = tokio::time::sleep(HEAD_TIMEOUT) => {}
        }
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
        // The token has made room for one.
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
