//! Arguments of calls.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::refusal::Refused;

/// Reads the arguments of a call into their form.
pub(super) fn read<T: DeserializeOwned>(arguments: Map<String, Value>) -> Result<T, Refused> {
    // What is `null` is not given: some clients send every field.
    let given: Map<String, Value> = arguments.into_iter().filter(|(_, value)| !value.is_null()).collect();
    serde_json::from_value(Value::Object(given)).map_err(|error| {
        let said = error.to_string();
        let name = said.split('`').nth(1).unwrap_or_default().to_owned();
        Refused::argument(name, said)
    })
}

/// One word or several.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(untagged)]
pub(super) enum OneOrMore {
    #[default]
    None,
    One(String),
    More(Vec<String>),
}

impl OneOrMore {
    pub(super) fn into_vec(self) -> Vec<String> {
        match self {
            Self::None => Vec::new(),
            Self::One(text) => vec![text],
            Self::More(texts) => texts,
        }
    }
}
