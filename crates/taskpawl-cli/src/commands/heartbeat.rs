//! Signs of life of a server, for programs that raise an alarm when they stop.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use taskpawl::model::value::format_time;
use taskpawl::{Source as _, SystemSource};

use crate::output::Output;

/// The shortest time between two signs. The server looks every 30 seconds, so that there is one each minute.
const INTERVAL: Duration = Duration::from_secs(55);

/// The longest wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The place of a sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Heartbeat {
    /// A file, which is replaced by one with the time.
    File(PathBuf),
    /// An address, which is requested.
    Url(String),
}

impl FromStr for Heartbeat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once("://") {
            Some(("http" | "https", rest)) if !rest.is_empty() => Ok(Self::Url(text.to_owned())),
            Some(_) => Err("expected an address that begins with http:// or https://, or a file".to_owned()),
            None if text.is_empty() => Err("expected an address or a file".to_owned()),
            None => Ok(Self::File(PathBuf::from(text))),
        }
    }
}

impl Heartbeat {
    fn send(&self) -> Result<(), String> {
        match self {
            Self::File(path) => {
                let new = path.with_extension("new");
                let text = format!("{}\n", format_time(SystemSource.now()));
                let written = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, path));
                written.map_err(|error| format!("{}: {error}", path.display()))
            }
            Self::Url(url) => {
                // A redirect would hand the address to another host.
                let config = ureq::Agent::config_builder().timeout_global(Some(TIMEOUT)).max_redirects(0);
                let sent = ureq::Agent::from(config.build()).get(url).call();
                sent.map(drop).map_err(|error| error.to_string())
            }
        }
    }
}

/// All signs of a server.
#[derive(Debug, Default)]
pub(super) struct Heartbeats {
    all: Vec<Heartbeat>,
    /// The time of the last signs, and the failures that were reported.
    last: Mutex<(Option<Instant>, Vec<String>)>,
}

impl Heartbeats {
    pub(super) fn new(all: Vec<Heartbeat>) -> Self {
        Self { all, last: Mutex::default() }
    }

    /// Sends the signs if it is time. A failure is a warning until the sign succeeds again.
    pub(super) async fn beat(&self, out: &Output) {
        let is_due = {
            let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            last.0.is_none_or(|last| last.elapsed() >= INTERVAL)
        };
        if self.all.is_empty() || !is_due {
            return;
        }
        let all = self.all.clone();
        let sent = tokio::task::spawn_blocking(move || {
            all.iter().filter_map(|one| one.send().err()).collect::<Vec<_>>()
        });
        let failed = sent.await.unwrap_or_default();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        for why in failed.iter().filter(|why| !last.1.contains(why)) {
            out.warn(&format!("the heartbeat was not sent: {why}"));
        }
        *last = (Some(Instant::now()), failed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_begins_with_its_scheme() {
        let read = |text: &str| text.parse::<Heartbeat>();
        assert_eq!(read("https://a.example/x"), Ok(Heartbeat::Url("https://a.example/x".to_owned())));
        assert_eq!(read("/run/beat"), Ok(Heartbeat::File("/run/beat".into())));
        for wrong in ["", "ftp://a.example", "https://"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
