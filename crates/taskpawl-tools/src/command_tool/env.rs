//! Environment variables of a program: templates that may contain secrets.

use std::collections::{BTreeMap, BTreeSet};

use super::template::{Template, Values};
use crate::context::CallContext;
use crate::error::ToolError;
use crate::secrets::is_name;

/// Start of a placeholder for a secret.
const OPEN: &str = "${secret:";

/// Template of the value of a variable.
#[derive(Clone, Debug)]
pub(super) struct Variable(Vec<Piece>);

#[derive(Clone, Debug)]
enum Piece {
    Template(Template),
    Text(String),
    Secret(String),
}

impl Variable {
    /// Parses a template in which `${secret:NAME}` stands for a secret, and `$${secret:NAME}` for that literal text.
    /// The error is worded to follow the name of the field.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (mut pieces, mut rest) = (Vec::new(), text);
        while let Some((before, after)) = rest.split_once(OPEN) {
            let (name, after) = after.split_once('}').filter(|(name, _)| is_name(name)).ok_or(
                "has an invalid `${secret:`: it must be followed by a name of 1 to 64 letters, digits, `_` and `-`, and a `}`",
            )?;
            let (before, piece) = match before.strip_suffix('$') {
                Some(before) => (before, Piece::Text(format!("{OPEN}{name}}}"))),
                None => (before, Piece::Secret(name.to_owned())),
            };
            pieces.extend([Piece::Template(Template::parse(before)?), piece]);
            rest = after;
        }
        pieces.push(Piece::Template(Template::parse(rest)?));
        Ok(Self(pieces))
    }

    /// Returns the parameters in the template.
    pub(super) fn params(&self) -> impl Iterator<Item = &str> {
        let templates = self.0.iter().filter_map(|piece| match piece {
            Piece::Template(template) => Some(template),
            Piece::Text(_) | Piece::Secret(_) => None,
        });
        templates.flat_map(Template::params)
    }

    /// Returns the secrets in the template.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Secret(name) => Some(name.as_str()),
            Piece::Template(_) | Piece::Text(_) => None,
        })
    }

    /// Fills in the parameters and leaves each secret as `${secret:NAME}`, for display and for the policy.
    pub(super) fn fill_shown(&self, values: &Values<'_>) -> Option<String> {
        let shown = self.secrets().map(|name| (name.to_owned(), format!("{OPEN}{name}}}"))).collect();
        self.fill(values, &shown)
    }

    /// Fills in all values; `None` if a parameter or a secret has no value.
    pub(super) fn fill(&self, values: &Values<'_>, secrets: &BTreeMap<String, String>) -> Option<String> {
        let mut filled = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Template(template) => filled.push_str(&template.fill(values)?),
                Piece::Text(text) => filled.push_str(text),
                Piece::Secret(name) => filled.push_str(secrets.get(name)?),
            }
        }
        Some(filled)
    }
}

/// Resolves the secrets in the templates of all variables.
pub(super) async fn secrets_of(
    variables: &BTreeMap<String, Variable>,
    cx: &CallContext,
) -> Result<BTreeMap<String, String>, ToolError> {
    let names: BTreeSet<String> = variables.values().flat_map(Variable::secrets).map(str::to_owned).collect();
    let Some(first) = names.first() else { return Ok(BTreeMap::new()) };
    let Some(vault) = cx.secrets.clone() else {
        return Err(ToolError::failed(format!(
            "its `env` uses the secret `{first}`, and secrets are only available in runs"
        )));
    };
    if vault.knows(&names) {
        return Ok(vault.resolve(&names)?);
    }
    // Resolving may block: a person may have to answer, or a program to end.
    match tokio::task::spawn_blocking(move || vault.resolve(&names)).await {
        Ok(values) => Ok(values?),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime shut down before the request started.
            Err(_) => Err(ToolError::Cancelled { result: None }),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_stand_beside_parameters_in_a_variable() {
        let secrets = BTreeMap::from([("KEY".to_owned(), "{value} ${secret:KEY}".to_owned())]);
        let user = json!("ann ${secret:KEY} {user}");
        let filled = |text: &str| {
            let values = Values::from([("user", &user)]);
            Variable::parse(text).map(|variable| variable.fill(&values, &secrets))
        };
        // Neither values of secrets nor of parameters are expanded again.
        let whole = "ann ${secret:KEY} {user}:{value} ${secret:KEY}!".to_owned();
        assert_eq!(filled("{user}:${secret:KEY}!"), Ok(Some(whole)));
        assert_eq!(filled("$${secret:KEY} {{x}}"), Ok(Some("${secret:KEY} {x}".to_owned())));
        assert_eq!(filled("{other}${secret:KEY}"), Ok(None));
        for wrong in ["${secret:}", "${secret:a b}", "${secret:KEY", "${secret:{user}}"] {
            assert!(filled(wrong).unwrap_err().contains("has an invalid `${secret:`"), "{wrong}");
        }
        assert!(filled("${KEY}").unwrap().is_none(), "a parameter that has no value");
    }
}
