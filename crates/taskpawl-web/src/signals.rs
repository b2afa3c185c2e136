//! Signals over HTTP: the name is in the path, the data in the body.

use hyper::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::act;
use crate::answer::{Problem, Reply};
use crate::asked::Asked;
use crate::page::Page;
use crate::scope::Scope;

/// The body of a request. All of it is optional, and so is the body.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Signal {
    /// The result of the call that waits.
    #[serde(default)]
    data: Value,
    /// The only task that may take the signal.
    #[serde(default)]
    to: Option<String>,
}

/// Sends a signal. Holders of a token for it act under the name of their token, so that the history tells them apart.
///
/// # Errors
/// The body is invalid, the policy leaves signals to people, or the rules refuse the signal.
pub(crate) fn send(page: &Page, asked: &Asked, body: &[u8]) -> Result<Reply, Problem> {
    let signal: Signal = if body.trim_ascii().is_empty() { Signal::default() } else { act::read(body)? };
    let manager = page.plans.manager().clone();
    let manager = match &asked.scope {
        Scope::Signal(_) => manager.with_actor(format!("token:{}", asked.token)),
        Scope::Read | Scope::Act | Scope::Mcp if page.options.refuses_signals => {
            let why = "the policy of this machine leaves signals to people and to tokens that they made";
            return Err(Problem::new(StatusCode::FORBIDDEN, why));
        }
        Scope::Read | Scope::Act | Scope::Mcp => manager,
    };
    let (id, taken_by) = page.known(manager.signal(&asked.value, signal.data, signal.to.as_deref()))?;
    Ok(Reply::json(&json!({"id": id, "name": asked.value, "takenBy": taken_by})))
}
