use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::definition::{Definition, WRITES, schema, texts};
use crate::server::answer::Answer;
use crate::server::arguments;
use crate::server::caller::Caller;
use crate::server::refusal::Refused;

pub(super) fn definition() -> Definition {
    Definition {
        description: "Deletes tasks that nothing depends on. task_update, action cancel, keeps them.",
        input: schema(json!({"ids": texts()}), &["ids"], true),
        hints: super::definition::Hints { destroys: true, ..WRITES },
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    ids: Vec<String>,
}

/// Checks the arguments of a call.
pub(super) fn check_arguments(given: Map<String, Value>) -> Result<(), Refused> {
    arguments::read::<Arguments>(given).map(drop)
}

pub(super) fn call(caller: &Caller, arguments: Map<String, Value>) -> Result<Answer, Refused> {
    let Arguments { ids } = arguments::read(arguments)?;
    if ids.is_empty() {
        return Err(Refused::argument("ids", "expected at least one"));
    }
    let deleted = caller.manager().delete(&ids)?;
    let total = deleted.len();
    Ok(Answer::new(json!({"deleted": deleted})).out_of("deleted", total))
}
