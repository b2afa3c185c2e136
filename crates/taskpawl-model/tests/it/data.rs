//! Data that the expressions in the tests read.

use serde_json::{Value, json};
use taskpawl_model::expr::{Data, TaskData};
use taskpawl_model::task::Status;

/// Returns the data used by the examples of the language reference.
pub(crate) fn data() -> Data {
    let map = |value: Value| value.as_object().cloned().unwrap();
    let task = |status, result: Value, results: Value| TaskData {
        context: map(json!({"compile": {"exitCode": 0}, "note": "fine"})),
        result,
        results: results.as_array().cloned(),
        status,
        error: (status == Status::Failed).then(|| "exit code 2".to_owned()),
        ..TaskData::default()
    };
    let built = json!({"exitCode": 0, "stdout": "{\"size\": 12}\n", "json": {"size": 12}});
    Data {
        params: map(json!({"region": "eu", "deploy": true, "count": 3, "list": ["a b", "c"], "empty": ""})),
        context: map(json!({"fetch": {"json": {"count": 3, "names": ["x", "y"]}}, "note": "it's"})),
        tasks: [
            ("build-lib".to_owned(), task(Status::Done, built.clone(), json!([{"a": 1}, built]))),
            ("plain".to_owned(), task(Status::Done, json!({"exitCode": 0, "stdout": "{}"}), json!([]))),
            ("skipped".to_owned(), task(Status::Skipped, Value::Null, json!([null]))),
            ("failed".to_owned(), task(Status::Failed, Value::Null, json!([]))),
        ]
        .into(),
        item: Some(json!({"name": "north", "size": 2})),
        index: Some(2),
        attempt: 1,
        ..Data::default()
    }
}
