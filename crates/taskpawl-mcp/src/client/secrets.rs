//! Secrets in the configuration of a server: inserted when it is started, and redacted from its output.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use taskpawl::tools::{CallContext, Redactor, Vault};

use super::catalogue::Catalogue;
use super::config::{Transport, Variables};
use super::variables::Name;
use super::words::chain;

/// Returns the transport with all placeholders replaced, and asks for the secrets among them.
pub(super) async fn filled(
    transport: &Transport,
    variables: &Variables,
    cx: &CallContext,
) -> Result<Transport, String> {
    let names = names(transport, variables)?;
    let values = values(names, cx).await?;
    let look_up = |name: Name<'_>| match name {
        Name::Variable(name) => variables(name),
        Name::Secret(name) => values.get(name).cloned(),
    };
    transport.expanded(&look_up).map_err(|unfilled| unfilled.to_string())
}

fn names(transport: &Transport, variables: &Variables) -> Result<BTreeSet<String>, String> {
    // The first pass only collects the names. Secrets are then resolved together, off the async threads.
    let names = RefCell::new(BTreeSet::new());
    let look_up = |name: Name<'_>| match name {
        Name::Variable(name) => variables(name),
        Name::Secret(name) => {
            names.borrow_mut().insert(name.to_owned());
            Some(String::new())
        }
    };
    transport.expanded(&look_up).map_err(|unfilled| unfilled.to_string())?;
    Ok(names.into_inner())
}

async fn values(names: BTreeSet<String>, cx: &CallContext) -> Result<BTreeMap<String, String>, String> {
    let Some(first) = names.first() else { return Ok(BTreeMap::new()) };
    let Some(vault) = cx.secrets.clone() else {
        return Err(format!(
            "its configuration names the secret `{first}`, and secrets are there in runs alone"
        ));
    };
    // Resolving may ask a person or wait for a program, which blocks.
    let asked = tokio::task::spawn_blocking(move || vault.resolve(&names)).await;
    let asked = asked.map_err(|_| "the request for its secrets failed".to_owned())?;
    asked.map_err(|error| chain(&error))
}

/// Returns a text without the secrets of the run.
pub(super) fn hidden(text: &str, cx: &CallContext) -> String {
    redactor(cx).text(text).into_owned()
}

/// Returns a catalogue without the secrets of the run.
pub(super) fn hidden_in(catalogue: Arc<Catalogue>, cx: &CallContext) -> Arc<Catalogue> {
    let redacted = || {
        let mut value = serde_json::to_value(&*catalogue).ok()?;
        redactor(cx).value(&mut value);
        serde_json::from_value(value).ok()
    };
    match redacted() {
        Some(redacted) if redacted == *catalogue => catalogue,
        Some(redacted) => Arc::new(redacted),
        // A catalogue that cannot be converted cannot be saved either.
        None => Arc::default(),
    }
}

fn redactor(cx: &CallContext) -> Redactor {
    cx.secrets.as_ref().map(Vault::redactor).unwrap_or_default()
}
