//! Sends traces to the collectors of the user's configuration.

use std::time::Duration;

use taskpawl_report::{Included, SpanRecord, otlp_protobuf};

use crate::app::App;
use crate::error::CliError;

/// The most spans of one request. Collectors refuse large requests.
const MAX_SPANS: usize = 500;

/// The longest wait for one answer.
const TIMEOUT: Duration = Duration::from_secs(2);

/// A collector of traces.
#[derive(Debug)]
pub(crate) struct Collector {
    agent: ureq::Agent,
    /// The address as the user gave it.
    pub(crate) url: String,
}

impl Collector {
    /// Returns the collector at an address.
    ///
    /// # Errors
    /// The user's configuration does not list the address: a trace must not go where only an agent or a plan wants it.
    pub(crate) fn of(app: &App, url: &str) -> Result<Self, CliError> {
        let listed = app.config()?.collectors();
        let same = |listed: &String| listed.trim_end_matches('/') == url.trim_end_matches('/');
        if !listed.iter().any(same) {
            let hint = "your own configuration file lists them: `[trace] collectors = [\"URL\"]`; \
                        `taskpawl config path` names that file";
            return Err(CliError::usage_with(format!("`{url}` is not one of your collectors"), hint));
        }
        // A proxy of the environment would be another address.
        let config = ureq::Agent::config_builder().timeout_global(Some(TIMEOUT)).proxy(None).max_redirects(0);
        Ok(Self { agent: config.build().into(), url: url.to_owned() })
    }

    /// Sends spans, and removes those that were taken. Returns at the first failure.
    pub(crate) fn send_all(&self, spans: &mut Vec<SpanRecord>, included: &Included) -> Result<(), SendError> {
        while !spans.is_empty() {
            let part = spans.len().min(MAX_SPANS);
            self.post(&otlp_protobuf(&spans[..part], included))?;
            spans.drain(..part);
        }
        Ok(())
    }

    /// Sends a request without spans, to learn whether the collector answers.
    pub(crate) fn probe(&self, included: &Included) -> Result<(), SendError> {
        self.post(&otlp_protobuf(&[], included))
    }

    fn post(&self, body: &[u8]) -> Result<(), SendError> {
        let base = self.url.trim_end_matches('/');
        let path = if base.ends_with("/v1/traces") { "" } else { "/v1/traces" };
        let request = self.agent.post(format!("{base}{path}"));
        request.header("content-type", "application/x-protobuf").send(body).map_err(Box::new)?;
        Ok(())
    }
}

/// The reason why spans were not sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    /// The collector did not answer, or refused them.
    #[error(transparent)]
    Http(#[from] Box<ureq::Error>),
    /// The collector takes spans more slowly than the run made them.
    #[error("it is too slow")]
    TooSlow,
}

impl SendError {
    /// Returns whether the collector was silent.
    pub(crate) fn is_timeout(&self) -> bool {
        matches!(self, Self::Http(error) if matches!(**error, ureq::Error::Timeout(_)))
    }
}
