//! Sends traces to the collectors of the user's configuration.

use std::time::Duration;

use taskpawl::tools::Power;
use taskpawl_report::{Included, SpanRecord, otlp_protobuf};

mod send_error;

pub(crate) use send_error::SendError;

use crate::context::Context;
use crate::error::CliError;
use crate::person;

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
    pub(crate) fn of(context: &Context, url: &str) -> Result<Self, CliError> {
        person::check_power(context, Power::Otlp, "otlp")?;
        let listed = context.config()?.collectors();
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
