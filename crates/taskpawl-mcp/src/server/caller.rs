//! The caller of a tool: its name, and the name of its request.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use taskpawl::model::advice::CommandLine;
use taskpawl::model::rules::Means;
use taskpawl::model::value::RunId;
use taskpawl::{Manager, Taskpawl};

use super::actions::CallWords;
use super::answer::{MAX_BYTES, MAX_BYTES_ASKED, MIN_BYTES};
use super::arguments::found;
use super::options::ServerOptions;
use super::refusal::Refused;

/// Maximum length of the name of an agent or a request, in characters.
const MAX_CHARS: usize = 128;

/// The caller of a tool.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub(super) plans: Taskpawl,
    /// Tools and resources of this server's runs.
    pub(super) means: Means,
    /// The flags for commands that a person is asked to run.
    pub(super) line: CommandLine,
    /// The agent's name, if the call has one.
    pub(super) agent: Option<String>,
    /// Maximum size of the answer, in bytes of JSON.
    pub(super) max_bytes: usize,
    /// The request's name, with a digest that distinguishes it from another request of the same name.
    request: Option<(String, String)>,
}

impl Caller {
    /// Removes `agent`, `request_id` and `max_bytes` from the arguments of a call to `tool`.
    pub(super) fn of(
        plans: &Taskpawl,
        options: &ServerOptions,
        tool: &str,
        arguments: &mut Map<String, Value>,
    ) -> Result<Self, Refused> {
        let max_bytes = max_bytes(arguments)?;
        let agent = name(arguments, "agent")?;
        let plans = agent.as_ref().map_or_else(|| plans.clone(), |agent| plans.acting_as(agent.clone()));
        let request = name(arguments, "request_id")?;
        let digest = || {
            let mut told = arguments.clone();
            // The waiting time does not change the request: a caller may repeat it to wait longer.
            told.remove("wait_s");
            hex(&Sha256::digest(format!("{tool} {}", Value::Object(told))))
        };
        let request = request.map(|name| (name, digest()));
        let means = options.means(&plans);
        Ok(Self { plans, means, line: options.line.clone(), agent, max_bytes, request })
    }

    /// Returns the manager for all commands of the call. They belong to one request, so a repeated call gets the
    /// recorded answers.
    pub(super) fn manager(&self) -> Manager {
        let manager = self.plans.manager().clone();
        match &self.request {
            Some((name, digest)) => manager.with_request(name, digest),
            None => manager,
        }
    }

    /// Returns the format of hints for this caller.
    pub(super) fn words(&self) -> CallWords<'_> {
        CallWords { agent: self.agent.as_deref(), line: &self.line }
    }

    /// Returns the manager for reads.
    pub(super) fn reads(&self) -> &Manager {
        self.plans.manager()
    }

    pub(super) fn actor(&self) -> &str {
        self.plans.manager().actor()
    }

    /// Returns the id for a run started by this request. It is the same for each repetition, and new for a request
    /// without a name.
    pub(super) fn run_id(&self) -> RunId {
        let Some((name, _)) = &self.request else {
            return RunId::from(self.reads().source().new_id());
        };
        // Neither part has control characters, so no two pairs give the same text.
        let hash = Sha256::digest(format!("{}\n{name}", self.actor()));
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash[..16]);
        let id = uuid::Builder::from_custom_bytes(bytes).into_uuid();
        RunId::from(id.to_string())
    }

    /// Returns the digest that is stored with a run, to detect another request of the same name.
    pub(super) fn digest(&self) -> Option<&str> {
        self.request.as_ref().map(|(_, digest)| digest.as_str())
    }
}

/// Returns the agent's name in the arguments of a call, if it is valid.
pub(super) fn agent_of(arguments: Option<&Map<String, Value>>) -> Option<String> {
    let name = arguments?.get("agent")?.as_str()?;
    is_name(name).then(|| name.to_owned())
}

/// Removes the size of the answer from the arguments. It is no part of a request: a caller may repeat that for more.
fn max_bytes(arguments: &mut Map<String, Value>) -> Result<usize, Refused> {
    let bytes = size_of(Some(arguments));
    match arguments.remove("max_bytes") {
        Some(value) if !value.is_null() && value.as_u64().is_none() => {
            let problem =
                format!("expected a number of bytes, at most {MAX_BYTES_ASKED}, not {}", found(&value));
            Err(Refused::argument("max_bytes", problem))
        }
        _ => Ok(bytes),
    }
}

/// Returns the size of the answer that the arguments of a call ask for.
pub(super) fn size_of(arguments: Option<&Map<String, Value>>) -> usize {
    let asked = arguments.and_then(|arguments| arguments.get("max_bytes")?.as_u64());
    let asked = asked.map(|bytes| usize::try_from(bytes).unwrap_or(MAX_BYTES_ASKED));
    asked.map_or(MAX_BYTES, |bytes| bytes.clamp(MIN_BYTES, MAX_BYTES_ASKED))
}

fn name(arguments: &mut Map<String, Value>, field: &'static str) -> Result<Option<String>, Refused> {
    let Some(value) = arguments.remove(field).filter(|value| !value.is_null()) else { return Ok(None) };
    if let Some(text) = value.as_str().filter(|text| is_name(text)) {
        return Ok(Some(text.to_owned()));
    }
    let expected = format!("expected text of 1 to {MAX_CHARS} characters, none of them a control character");
    Err(Refused::argument(field, format!("{expected}, not {}", found(&value))))
}

fn is_name(text: &str) -> bool {
    let chars = text.chars().count();
    (1..=MAX_CHARS).contains(&chars) && !text.chars().any(char::is_control)
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}
