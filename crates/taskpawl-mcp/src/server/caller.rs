//! Who calls: in whose name things are done, and by which request.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use taskpawl::model::{CommandLine, Means, RunId};
use taskpawl::{Manager, Taskpawl};

use super::actions::CallWords;
use super::arguments::found;
use super::options::ServerOptions;
use super::refusal::Refused;

/// The longest name of an agent or a request, in characters.
const MAX_CHARS: usize = 128;

/// Who calls.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub(super) plans: Taskpawl,
    /// What runs of this server have.
    pub(super) means: Means,
    /// The flags of commands that a person is asked to run.
    pub(super) line: CommandLine,
    /// The name that the call gave, if it gave one.
    pub(super) agent: Option<String>,
    /// By which request: its name, and what tells it from another of that name.
    request: Option<(String, String)>,
}

impl Caller {
    /// Takes `agent` and `request_id` out of the arguments of a call of `tool`.
    pub(super) fn of(
        plans: &Taskpawl,
        options: &ServerOptions,
        tool: &str,
        arguments: &mut Map<String, Value>,
    ) -> Result<Self, Refused> {
        let agent = name(arguments, "agent")?;
        let plans = agent.as_ref().map_or_else(|| plans.clone(), |agent| plans.acting_as(agent.clone()));
        let request = name(arguments, "request_id")?;
        let digest = || {
            let mut told = arguments.clone();
            // How long somebody waits for the answer makes it no other request.
            told.remove("wait_s");
            hex(&Sha256::digest(format!("{tool} {}", Value::Object(told))))
        };
        let request = request.map(|name| (name, digest()));
        let means = options.means(&plans);
        Ok(Self { plans, means, line: options.line.clone(), agent, request })
    }

    /// Returns every command on the plan. It is the manager for all commands of the call, so that these are the parts of one request.
    pub(super) fn manager(&self) -> Manager {
        let manager = self.plans.manager().clone();
        match &self.request {
            Some((name, digest)) => manager.with_request(name, digest),
            None => manager,
        }
    }

    /// Returns the words of hints for this caller.
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

    /// Returns the id of the run that this request starts, the same for every repetition; a new one where the request has no name.
    pub(super) fn run_id(&self) -> RunId {
        let Some((name, _)) = &self.request else {
            return RunId::from(self.reads().source().new_id());
        };
        // Neither has control characters, so that no two pairs come to the same text.
        let hash = Sha256::digest(format!("{}\n{name}", self.actor()));
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash[..16]);
        let id = uuid::Builder::from_custom_bytes(bytes).into_uuid();
        RunId::from(id.to_string())
    }

    /// Returns what a run of this request has among its parameters, so that another request of this name is told from it.
    pub(super) fn digest(&self) -> Option<&str> {
        self.request.as_ref().map(|(_, digest)| digest.as_str())
    }
}

/// Returns the name that the arguments of a call give, where it is one.
pub(super) fn agent_of(arguments: Option<&Map<String, Value>>) -> Option<String> {
    let name = arguments?.get("agent")?.as_str()?;
    is_name(name).then(|| name.to_owned())
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
