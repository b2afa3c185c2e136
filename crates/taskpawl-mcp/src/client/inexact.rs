//! Results of servers that cannot be kept as they are written.

use rmcp::model::{ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// The code of the error that stands in for such a result; outside of what the protocol and its servers use.
pub(super) const INEXACT: ErrorCode = ErrorCode(-1_900_105);

/// The parts of a message that tell results with values from lists of tools, whose schemas may have any bounds.
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

/// Returns the error that a caller gets in place of a result with a key given twice or a number that cannot be kept.
pub(super) fn in_place_of(message: &[u8]) -> Option<ServerJsonRpcMessage> {
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
        // What stands in a text is text; a schema may have any bounds.
        assert_eq!(refused(r#"{"content":[{"type":"text","text":"{\"n\":18446744073709551616}"}]}"#), None);
        assert_eq!(refused(r#"{"tools":[{"inputSchema":{"maximum":18446744073709551616}}]}"#), None);
    }
}
