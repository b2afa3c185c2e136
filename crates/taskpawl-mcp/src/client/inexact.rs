//! Results of servers that cannot be stored exactly.

use rmcp::model::{ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// Code of the error that replaces such a result; outside of the range that the protocol and servers use.
pub(super) const INEXACT: ErrorCode = ErrorCode(-1_900_105);

/// The parts of a message that distinguish results with values from lists of tools. Schemas may have bounds of any
/// size.
#[derive(Deserialize)]
struct Head {
    id: RequestId,
    result: HeadResult,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeadResult {
    content: Option<IgnoredAny>,
    structured_content: Option<IgnoredAny>,
    contents: Option<IgnoredAny>,
}

/// Returns the error that replaces a result with a duplicate key or with a number that cannot be stored exactly.
pub(super) fn in_place_of(message: &[u8]) -> Option<ServerJsonRpcMessage> {
    // Another parser may use the first of two equal keys, and a rounded number would be stored as if the server had
    // sent it.
    let fault = taskpawl_json::check(message).err()?;
    let Head { id, result } = serde_json::from_slice(message).ok()?;
    let HeadResult { content, structured_content, contents } = result;
    (content.is_some() || structured_content.is_some() || contents.is_some()).then(|| {
        let error = ErrorData::new(INEXACT, fault.to_string(), None);
        ServerJsonRpcMessage::error(error, Some(id))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(result: &str) -> Option<String> {
        let message = in_place_of(format!(r#"{{"jsonrpc":"2.0","id":3,"result":{result}}}"#).as_bytes())?;
        let ServerJsonRpcMessage::Error(error) = message else { panic!("{message:?}") };
        assert_eq!(error.id, Some(RequestId::Number(3)));
        Some(error.error.message.into_owned())
    }

    #[test]
    fn a_result_that_cannot_be_kept_is_replaced_by_an_error() {
        let of = |value: &str| refused(&format!(r#"{{"content":[],"structuredContent":{{"n":{value}}}}}"#));
        let path = "result.structuredContent.n";
        for number in ["18446744073709551616", "-9223372036854775809"] {
            let said = of(number).unwrap();
            assert!(said.ends_with(&format!("{path}: number `{number}` cannot be kept exactly")), "{said}");
        }
        assert!(of(&format!("1{}", "0".repeat(400))).unwrap().contains("cannot be kept exactly"));
        assert!(of(r#"{"a":1,"a":2}"#).unwrap().contains("key `a` is already given"));
        assert!(of(r#"[{"b":{"a":1,"a":2}}]"#).unwrap().contains("key `a` is already given"));
        for fine in ["1e2", "0.1", "18446744073709551615", r#""18446744073709551616""#] {
            assert_eq!(of(fine), None, "{fine}");
        }
        // JSON within a string is not checked, and neither are bounds in a schema.
        assert_eq!(refused(r#"{"content":[{"type":"text","text":"{\"n\":18446744073709551616}"}]}"#), None);
        assert_eq!(refused(r#"{"tools":[{"inputSchema":{"maximum":18446744073709551616}}]}"#), None);
    }
}
