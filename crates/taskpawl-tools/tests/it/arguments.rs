use serde_json::{Value, json};
use taskpawl_tools::{Registry, ToolError};

/// Calls of every built-in tool without arguments, and one call for each kind of mistake.
fn cases() -> Vec<(&'static str, Value)> {
    vec![
        ("edit_file", json!({})),
        ("edit_file", json!({"path": "a", "old": "", "new": "b"})),
        ("exec", json!({})),
        ("exec", json!(["ls"])),
        ("exec", json!({"argv": "ls"})),
        ("exec", json!({"argv": []})),
        ("exec", json!({"argv": ["ls", 1]})),
        ("exec", json!({"args": ["ls"]})),
        ("exec", json!({"argv": ["ls"], "ok_exit_codes": [1]})),
        ("exec", json!({"argv": ["ls"], "timeout": "5m"})),
        ("exec", json!({"argv": ["ls"], "okExitCodes": [256]})),
        ("exec", json!({"argv": ["ls"], "parse": "yaml"})),
        ("exec", json!({"argv": ["ls"], "env": {"A": 1}})),
        ("exec", json!({"argv": ["ls"], "env": {"A=B": "1"}})),
        ("fail", json!({})),
        ("glob", json!({})),
        ("grep", json!({})),
        ("grep", json!({"pattern": "a", "limit": 0})),
        ("list_dir", json!({})),
        ("log", json!({"message": null})),
        ("read_file", json!({})),
        ("read_file", json!({"path": "a", "offset": 0})),
        ("read_file", json!({"path": "a", "limit": 1.5})),
        ("shell", json!({"command": ""})),
        ("shell", json!({"cmd": "ls"})),
        ("sleep", json!({})),
        ("sleep", json!({"duration": "5 minutes"})),
        ("sleep", json!({"duration": 5})),
        ("write_file", json!({"path": "a"})),
        ("write_file", json!({"path": "a", "content": {"a": 1}})),
        ("write_file", json!({"path": "a", "content": "", "append": "yes"})),
        ("write_file", json!({"path": "a", "content": "", "mode": "rwx"})),
    ]
}

#[test]
fn errors_name_the_field() {
    let registry = Registry::builtin();
    let lines = cases().into_iter().map(|(tool, args)| {
        let error = registry.get(tool).unwrap().check_args(&args).unwrap_err();
        assert!(matches!(&error, ToolError::InvalidArgs { field, .. } if field.starts_with("args")));
        format!("{args}\n  {error}")
    });
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"));
}

#[cfg(feature = "http")]
#[test]
fn errors_of_requests_name_the_field() {
    let registry = Registry::builtin();
    let cases = [
        json!({}),
        json!({"url": "ftp://example.org/"}),
        json!({"url": "http://example.org/", "method": "get"}),
        json!({"url": "http://example.org/", "headers": {"a": 1}}),
    ];
    let lines =
        cases.map(|args| registry.get("http_request").unwrap().check_args(&args).unwrap_err().to_string());
    insta::assert_snapshot!(lines.join("\n"), @r#"
    `http_request` refuses its arguments: `args.url` is missing; it has to be a string
    `http_request` refuses its arguments: `args.url` has to match `^https?://`, such as `"https://example.org/"`, but is the string `"ftp://example.org/"`
    `http_request` refuses its arguments: `args.method` has to be one of `"GET"`, `"HEAD"`, `"POST"`, `"PUT"`, `"PATCH"`, `"DELETE"`, `"OPTIONS"`, but is the string `"get"`
    `http_request` refuses its arguments: `args.headers.a` has to be a string, but is the number `1`
    "#);
}
