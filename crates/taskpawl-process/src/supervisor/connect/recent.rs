//! The calls of the latest connections, by their local ports.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use crate::network::Source;

/// The number of connections that are remembered.
const MAX: usize = 4096;

/// Tells the call of a socket that may be closed by now.
#[derive(Debug, Default)]
pub(crate) struct RecentSources(Mutex<Sources>);

#[derive(Debug, Default)]
struct Sources {
    calls: HashMap<Source, u64>,
    order: VecDeque<Source>,
}

impl RecentSources {
    pub(super) fn add(&self, source: Source, call: u64) {
        let mut sources = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sources.calls.insert(source, call).is_none() {
            sources.order.push_back(source);
        }
        if sources.order.len() > MAX
            && let Some(oldest) = sources.order.pop_front()
        {
            sources.calls.remove(&oldest);
        }
    }

    pub(crate) fn call_of(&self, source: Source) -> Option<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).calls.get(&source).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_connections_are_forgotten() {
        let recent = RecentSources::default();
        for port in 0..=u16::try_from(MAX).unwrap() {
            recent.add(Source::tcp(port), u64::from(port));
            recent.add(Source::tcp(port), u64::from(port) + 1);
        }
        assert_eq!(recent.call_of(Source::tcp(0)), None);
        assert_eq!(recent.call_of(Source::tcp(1)), Some(2));
        assert_eq!(recent.call_of(Source::udp(1)), None);
    }
}
