use std::cell::Cell;

use taskpawl_fuzz::Target;

use super::{conversation, events, messages};

/// Tokens of the protocol for building inputs.
const WORDS: &[&str] = &[
    "jsonrpc",
    "2.0",
    "id",
    "\"@id\"",
    "method",
    "params",
    "result",
    "error",
    "code",
    "message",
    "data",
    "tools",
    "name",
    "description",
    "title",
    "inputSchema",
    "outputSchema",
    "annotations",
    "readOnlyHint",
    "nextCursor",
    "content",
    "type",
    "text",
    "image",
    "resource",
    "structuredContent",
    "isError",
    "_meta",
    "progressToken",
    "progress",
    "total",
    "resultType",
    "complete",
    "inputRequired",
    "protocolVersion",
    "2026-07-28",
    "2025-06-18",
    "capabilities",
    "listChanged",
    "serverInfo",
    "version",
    "supportedVersions",
    "ttlMs",
    "cacheScope",
    "notifications/progress",
    "notifications/tools/list_changed",
    "notifications/cancelled",
    "notifications/message",
    "notifications/subscriptions/acknowledged",
    "io.modelcontextprotocol/subscriptionId",
    "sampling/createMessage",
    "ping",
    "properties",
    "$ref",
    "#",
    "#/$defs/a",
    "$defs",
    "anyOf",
    "pattern",
    "(a+)+$",
    "^(?!x)",
    "required",
    "additionalProperties",
    "enum",
    "const",
    "minimum",
    "1e400",
    "\n",
    "data: ",
    "event: ",
    "retry: ",
    "id: ",
    ":",
    "\r",
    "\n\n",
];

const MESSAGES: Target<'_> = Target {
    name: "messages of MCP servers",
    corpus: &[
        r#"{"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": true}}, "serverInfo": {"name": "s", "version": "1"}}}"#,
        r##"{"jsonrpc": "2.0", "id": 2, "result": {"resultType": "complete", "tools": [{"name": "echo", "description": "Says it.", "inputSchema": {"type": "object", "properties": {"text": {"type": "string", "pattern": "^a"}, "a": {"$ref": "#/$defs/b"}}, "required": ["text"], "additionalProperties": false, "$defs": {"b": {"anyOf": [{"type": "null"}, {"items": {"$ref": "#/$defs/b"}}]}}}, "annotations": {"readOnlyHint": true}}, {"name": "a b", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}}], "nextCursor": "2"}}"##,
        r#"{"jsonrpc": "2.0", "id": 3, "result": {"content": [{"type": "text", "text": "no\u001b[2J"}, {"type": "image", "data": "AAAA", "mimeType": "image/png"}, {"type": "resource", "resource": {"uri": "a:b", "text": "c"}}], "structuredContent": {"a": [1, 2.5, null]}, "isError": true}}"#,
        "Server is starting\n{\"jsonrpc\": \"2.0\", \"method\": \"notifications/progress\", \"params\": {\"progressToken\": 0, \"progress\": 1.5, \"total\": 3, \"message\": \"at it\\u0007\"}}\n{\"jsonrpc\": \"2.0\", \"id\": \"4\", \"error\": {\"code\": -32601, \"message\": \"unknown\", \"data\": [[]]}}",
        r#"{"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": {"io.modelcontextprotocol/subscriptionId": 3}}}"#,
        r#"{"jsonrpc": "2.0", "id": 9, "method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}"#,
    ],
    words: WORDS,
};

const EVENTS: Target<'_> = Target {
    name: "event streams of MCP servers",
    corpus: &[
        "event: message\nid: 1\ndata: {\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": {\"content\": [{\"type\": \"text\", \"text\": \"a\"}]}}\n\n",
        ": hello\r\nretry: 10\r\ndata: {\"jsonrpc\": \"2.0\", \"method\": \"notifications/progress\",\ndata:  \"params\": {\"progressToken\": 0, \"progress\": 1}}\n\ndata\n\n",
        r#"{"jsonrpc": "2.0", "id": 2, "result": {"resultType": "complete", "tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}}"#,
    ],
    words: WORDS,
};

const CONVERSATIONS: Target<'_> = Target {
    name: "conversations with MCP servers",
    corpus: &[
        concat!(
            r#"{"jsonrpc":"2.0","id":"@id","result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"},"ttlMs":0,"cacheScope":"private"}}"#,
            "\n",
            r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"@id"},"notifications":{"toolsListChanged":true}}}"#,
            "\n",
            r#"{"jsonrpc":"2.0","id":"@id","result":{"resultType":"complete","tools":[{"name":"echo","inputSchema":{"type":"object"}}]}}"#,
            "\n",
            r#"{"jsonrpc":"2.0","id":"@id","result":{"resultType":"complete","content":[{"type":"text","text":"a"}]}}"#,
        ),
        concat!(
            r#"{"jsonrpc":"2.0","id":"@id","error":{"code":-32601,"message":"unknown"}}"#,
            "\n",
            r#"{"jsonrpc":"2.0","id":"@id","result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}"#,
            "\n",
            r#"{"jsonrpc":"2.0","id":"@id","result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}],"nextCursor":"2"}}"#,
            "\n",
            r#"{"jsonrpc":"2.0","id":"@id","result":{"tools":[]}}"#,
            "\n",
            r#"{"jsonrpc":"2.0","id":"@id","result":{"content":[],"isError":true}}"#,
        ),
    ],
    words: WORDS,
};

/// The part of the inputs that become conversations: each costs some hundred times as much as a message.
const CONVERSATION_PARTS: u64 = 20;

/// Converts two characters to bytes that are not UTF-8.
fn bytes_of(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\u{10ffff}' => bytes.push(0xff),
            '\u{202e}' => bytes.extend([0xe2, 0x80]),
            char => bytes.extend(char.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    bytes
}

#[test]
fn the_corpus_is_read_or_refused() {
    MESSAGES.corpus(|text| messages(&bytes_of(text)));
    EVENTS.corpus(|text| events(&bytes_of(text)));
    CONVERSATIONS.corpus(|text| conversation(&bytes_of(text)));
    let each: Vec<bool> = CONVERSATIONS.corpus.iter().map(|text| conversation(text.as_bytes())).collect();
    assert_eq!(each, [true, true], "a conversation of either era gets as far as a call");
}

#[test]
fn hostile_messages_panic_nothing() {
    MESSAGES.fuzz(|text| messages(&bytes_of(text)));
}

#[test]
fn hostile_event_streams_panic_nothing() {
    EVENTS.fuzz(|text| events(&bytes_of(text)));
}

#[test]
fn hostile_conversations_panic_nothing() {
    CONVERSATIONS.fuzz_part(CONVERSATION_PARTS, |text| conversation(&bytes_of(text)));
}

#[test]
fn what_is_planted_behind_the_readers_is_found() {
    // A positive control: the assertion fails for an input that parses although a part of it was changed.
    let planted =
        |text: &str| !MESSAGES.corpus.contains(&text) && text.contains("(a+)+$") && messages(text.as_bytes());
    let inputs = Cell::new(0);
    let found = MESSAGES.search(100_000, 1, |text| {
        inputs.set(inputs.get() + 1);
        assert!(!planted(text), "planted");
        true
    });
    assert!(found.is_some(), "nothing was found in {} inputs", inputs.get());
}

#[test]
fn a_message_that_goes_on_for_ever_and_one_that_is_nested_without_end_are_refused() {
    let long = [b"{\"a\": \"".to_vec(), vec![b'x'; 9 << 20]].concat();
    let deep = [vec![b'['; 100_000], vec![b']'; 100_000]].concat();
    let deep_in = [
        &b"{\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": {\"structuredContent\": "[..],
        &deep,
        b", \"content\": []}}",
    ]
    .concat();
    for bytes in [long, deep, deep_in] {
        assert!(!messages(&bytes) && !events(&bytes));
    }
}
