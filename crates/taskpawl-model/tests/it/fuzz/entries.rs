//! Parsers under test. Each function returns whether the input was accepted, and panics if an invariant is violated.

use serde_json::{Value, json};
use taskpawl_model::expr::{
    condition_references, evaluate, evaluate_args, evaluate_condition, mentions, references,
};
use taskpawl_model::plan::{call_from_json, expand_plan, parse_plan, task_from_json};
use taskpawl_model::task::Task;
use taskpawl_model::value::{Period, SecretPiece, is_secret_name, secret_pieces};

use crate::data::data;

/// Checks that every mention is a secret or escaped, and that no text is lost.
pub(crate) fn secret(text: &str) -> bool {
    let Ok(pieces) = secret_pieces(text) else { return false };
    let (mut secrets, mut rest) = (0, String::new());
    for piece in &pieces {
        match piece {
            SecretPiece::Secret(name) => {
                assert!(is_secret_name(name), "{name:?}");
                secrets += 1;
            }
            SecretPiece::Text(text) => rest.push_str(text),
        }
    }
    let names: usize = pieces
        .iter()
        .map(|piece| if let SecretPiece::Secret(name) = piece { name.len() + 10 } else { 0 })
        .sum();
    let escaped = text.matches("$${secret:").count();
    assert_eq!(text.matches("${secret:").count(), secrets + escaped);
    assert_eq!(rest.len() + names + escaped, text.len());
    true
}

pub(crate) fn plan(text: &str) -> bool {
    let Ok(plan) = parse_plan(text) else { return false };
    let expanded = expand_plan(&plan);
    let again = parse_plan(&expanded.to_string())
        .unwrap_or_else(|errors| panic!("the long form cannot be parsed: {errors}\n{expanded}"));
    assert_eq!(expand_plan(&again), expanded, "expanding the long form changes it");
    true
}

pub(crate) fn task(text: &str) -> bool {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return false };
    let task = serde_json::from_value::<Task>(value.clone()).ok().and_then(|task| task.into_parts().ok());
    let by_hand = task_from_json(&value);
    let call = call_from_json(&value);
    task.is_some() || by_hand.is_ok() || call.is_ok()
}

pub(crate) fn expression(text: &str) -> bool {
    let (data, value) = (data(), json!([text, { "key": text }]));
    let found = references(&value);
    let _ = (mentions(&value), condition_references(text), evaluate_condition(text, &data));
    let evaluated = evaluate(&value, &data);
    // Secret names are checked by the parser only; evaluation leaves them alone.
    let has_secret = text.contains("${secret:");
    assert!(
        found.is_ok() || evaluated.is_err() || has_secret,
        "an expression that cannot be parsed was evaluated"
    );
    let args = json!({"command": text, "argv": [text]}).as_object().cloned().unwrap_or_default();
    evaluate_args("shell", &args, &data).is_ok()
        | evaluate_args("exec", &args, &data).is_ok()
        | text.parse::<Period>().is_ok()
}
