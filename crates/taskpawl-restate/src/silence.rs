//! Notices about a server that does not answer.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The silence that is not worth a notice.
const QUIET: Duration = Duration::from_secs(10);

/// Tells the user something while the run goes on.
#[derive(Clone)]
pub struct Notice(Arc<dyn Fn(String) + Send + Sync>);

impl Notice {
    /// Returns a notice that calls a function.
    pub fn new(tell: impl Fn(String) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }
}

impl fmt::Debug for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Notice")
    }
}

/// The time since which the server is silent, for all calls together.
#[derive(Debug)]
pub(crate) struct Silence {
    notice: Notice,
    patience: Duration,
    since: Mutex<Option<(Instant, bool)>>,
}

impl Silence {
    pub(crate) fn new(notice: Notice, patience: Duration) -> Self {
        Self { notice, patience, since: Mutex::default() }
    }

    /// Notes a failed request. Returns whether the patience is over.
    pub(crate) fn is_too_long(&self, why: &str) -> bool {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        let (begin, is_told) = since.get_or_insert_with(|| (Instant::now(), false));
        let lasted = begin.elapsed();
        if lasted >= QUIET && !*is_told {
            *is_told = true;
            let most = self.patience.as_secs();
            (self.notice.0)(format!(
                "the Restate server is silent, and the run waits for up to {most} s: {why}"
            ));
        }
        lasted >= self.patience
    }

    /// Notes an answer.
    pub(crate) fn end(&self) {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((begin, true)) = since.take() {
            (self.notice.0)(format!(
                "the Restate server answers again after {} s",
                begin.elapsed().as_secs()
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_counts_from_the_first_failure() {
        let silence = Silence::new(Notice::new(|_| {}), Duration::from_millis(20));
        assert!(!silence.is_too_long("why"));
        std::thread::sleep(Duration::from_millis(30));
        assert!(silence.is_too_long("why"));
        silence.end();
        assert!(!silence.is_too_long("why"), "an answer ends the silence");
    }
}
