use std::pin::pin;
use std::time::Duration;

use serde_json::{Value, json};
use taskpawl_tools::{Programs, ToolError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::support::{Project, until};

#[tokio::test]
async fn exec_returns_exit_code_and_output() {
    let project = Project::new();
    let result = project.call("exec", json!({"argv": ["echo", "a  b", "$HOME"]})).await.unwrap();
    assert_eq!(
        result,
        json!({"exitCode": 0, "stdout": "a  b $HOME\n", "stderr": "", "truncated": false, "sandbox": {"level": "off"}})
    );
}

#[tokio::test]
async fn exec_uses_directory_environment_and_input() {
    let mut project = Project::new();
    project.cx.task = "build".to_owned();
    project.cx.call = "build.0".to_owned();
    project.cx.attempt = 2;
    project.cx.idempotency_key = "key".to_owned();
    project.cx.traceparent = "00-1-2-01".to_owned();
    project.write("sub/file", "");
    let script = "basename $PWD; cat; echo $A $TASKPAWL_TASK $TASKPAWL_CALL $TASKPAWL_ATTEMPT $TASKPAWL_IDEMPOTENCY_KEY $TRACEPARENT";
    let env = json!({"A": "value", "TASKPAWL_IDEMPOTENCY_KEY": "forged", "TRACEPARENT": "forged"});
    let args = json!({"argv": ["sh", "-c", script], "cwd": "sub", "env": env, "stdin": "in\n"});
    let result = project.call("exec", args).await.unwrap();
    assert_eq!(result["stdout"], "sub\nin\nvalue build build.0 2 key 00-1-2-01\n");
}

/// A runtime whose only thread for blocking work never gets through with it: every look at a file hangs.
fn on_hung_files<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build();
    let runtime = runtime.unwrap();
    let (_held, hung) = std::sync::mpsc::channel::<()>();
    runtime.spawn_blocking(move || hung.recv());
    let ended = runtime.block_on(test);
    runtime.shutdown_background();
    ended
}

#[test]
fn a_directory_that_does_not_answer_holds_up_neither_a_time_out_nor_a_cancellation() {
    let mut project = Project::new();
    project.write("sub/file", "");
    let cases = [
        ("exec", json!({"argv": ["touch", "ran"], "cwd": "sub"})),
        // An error would be the answer of a look at the directory.
        ("exec", json!({"argv": ["touch", "ran"], "cwd": "nowhere"})),
        ("exec", json!({"argv": ["touch", "ran"]})),
        ("shell", json!({"command": "touch ran"})),
    ];
    for (tool, args) in cases {
        on_hung_files(async {
            project.cx.cancel = CancellationToken::new();
            project.cx.deadline = Some(Instant::now() + Duration::from_millis(20));
            let error = project.call(tool, args.clone()).await.unwrap_err();
            assert!(matches!(error, ToolError::Timeout { .. }), "{tool} {args}: {error}");
            project.cx.deadline = None;
            let (error, ()) =
                tokio::join!(project.call(tool, args.clone()), async { project.cx.cancel.cancel() });
            let error = error.unwrap_err();
            assert!(matches!(error, ToolError::Cancelled { .. }), "{tool} {args}: {error}");
        });
    }
    assert!(!project.path("ran").exists() && !project.path("sub/ran").exists());
}

#[tokio::test]
async fn another_exit_code_fails_the_call_and_keeps_the_result() {
    let project = Project::new();
    let script = "echo out; echo first >&2; printf '\\033[31merror\\033[0m: no such thing\\n\\n' >&2; exit 3";
    let args = json!({"argv": ["sh", "-c", script], "okExitCodes": [0, 1]});
    let error = project.call("exec", args).await.unwrap_err();
    assert_eq!(error.to_string(), "`sh` exited with code 3: error: no such thing");
    assert_eq!(error.class(), "exit_code");
    let result = error.result().unwrap();
    assert_eq!((&result["exitCode"], &result["stdout"]), (&json!(3), &json!("out\n")));

    let args = json!({"argv": ["sh", "-c", "exit 3"], "okExitCodes": [3]});
    assert_eq!(project.call("exec", args).await.unwrap()["exitCode"], 3);
    let args = json!({"argv": ["false"]});
    assert_eq!(project.refusal("exec", args).await, "exit_code: `false` exited with code 1");
    let args = json!({"command": "kill -9 $$"});
    assert_eq!(project.refusal("shell", args).await, "exit_code: `kill -9 $$` was ended by signal 9");
}

/// JSON that other parsers read with another meaning: two equal keys, and a number that is rounded.
pub(crate) const INEXACT_JSON: [&str; 2] = ["{\"a\": 1, \"a\": 2}", "[18446744073709551616]"];

#[tokio::test]
async fn output_that_is_no_exact_json_is_refused() {
    let project = Project::new();
    for text in INEXACT_JSON {
        let args = json!({"argv": ["echo", text], "parse": "json"});
        assert_eq!(project.call("exec", args).await.unwrap_err().class(), "invalid_json", "{text}");
    }
}

#[tokio::test]
async fn output_is_parsed_on_demand() {
    let mut project = Project::new();
    let args = json!({"argv": ["echo", "{\"a\": [1]}"], "parse": "json"});
    assert_eq!(project.call("exec", args).await.unwrap()["json"], json!({"a": [1]}));

    let args = json!({"argv": ["echo", "nonsense"], "parse": "json"});
    let error = project.call("exec", args).await.unwrap_err();
    insta::assert_snapshot!(error, @"standard output of `echo` is not valid JSON: expected ident at line 1 column 2");
    assert_eq!(error.result().unwrap()["stdout"], "nonsense\n");

    project.cx.limits.keep_bytes = 4;
    let args = json!({"argv": ["echo", "[1, 2, 3]"], "parse": "json"});
    insta::assert_snapshot!(project.refusal("exec", args).await, @"invalid_json: standard output of `echo` is not valid JSON: its 10 bytes exceed the size limit of a result");
}

#[tokio::test]
async fn failures_to_start_have_distinct_errors() {
    let project = Project::new();
    project.write("script", "echo");
    let cases = [
        json!({"argv": ["no-such-program"], "env": {"PATH": "/bin"}}),
        json!({"argv": ["./no-such-program"]}),
        json!({"argv": ["./script"]}),
        json!({"argv": ["true"], "cwd": "nowhere"}),
        json!({"argv": ["true"], "cwd": "script"}),
    ];
    let mut errors = Vec::new();
    for args in cases {
        errors.push(project.refusal("exec", args).await);
    }
    insta::assert_snapshot!(errors.join("\n"), @r"
    spawn: program `no-such-program` is not in PATH (`/bin`); install it or use its full path
    spawn: program `[dir]/project/no-such-program` does not exist
    spawn: program `[dir]/project/script` is not executable; run `chmod +x` on it
    io: failed to open `nowhere`: No such file or directory (os error 2)
    spawn: working directory `[dir]/project/script` is not an accessible directory
    ");
}

#[tokio::test]
async fn shell_starts_a_shell_only_if_needed() {
    let project = Project::new();
    let output = async |command: &str| -> Value {
        project.call("shell", json!({"command": command})).await.unwrap()["stdout"].clone()
    };
    assert_eq!(output("printf '%s-' a b | tr a-z A-Z").await, "A-B-");
    assert_eq!(output("A=1; echo \"$A\"").await, "1\n");
    // The parent of a directly started program is this process, not a shell.
    let own_id = format!("{}\n", std::process::id());
    assert_eq!(output("sh -c 'echo $PPID'").await, own_id);
    assert_ne!(output("sh -c 'echo $PPID'; true").await, own_id);
    assert_eq!(output("expr 'a b' : '.*'").await, "3\n");
    assert_eq!(
        project.call("shell", json!({"command": "exit 4", "okExitCodes": [4]})).await.unwrap()["exitCode"],
        4
    );
}

#[tokio::test]
async fn long_output_is_truncated_and_its_file_is_named() {
    let mut project = Project::new();
    project.cx.limits.keep_bytes = 100;
    let result = project.call("shell", json!({"command": "seq 1 1000; echo short >&2"})).await.unwrap();
    assert_eq!((&result["truncated"], &result["stderr"]), (&json!(true), &json!("short\n")));
    let file = result["outputFile"].as_str().unwrap();
    assert_eq!(project.stable(file), "[dir]/output/call.stdout");
    assert_eq!(std::fs::read_to_string(file).unwrap().lines().count(), 1000);

    let result = project.call("shell", json!({"command": "seq 1 1000 >&2"})).await.unwrap();
    assert_eq!(project.stable(result["outputFile"].as_str().unwrap()), "[dir]/output/call.stderr");
}

#[tokio::test]
async fn endless_output_fails_the_call() {
    let mut project = Project::new();
    project.cx.limits.output_bytes = 100_000;
    project.cx.limits.keep_bytes = 100;
    let error = project.call("exec", json!({"argv": ["yes"]})).await.unwrap_err();
    assert_eq!(
        (error.class(), error.to_string().as_str()),
        ("output_limit", "the output of the call exceeded the limit of 100000 bytes")
    );
    assert_eq!(error.result().unwrap()["truncated"], true);
    assert_eq!(std::fs::metadata(project.beside("output/call.stdout")).unwrap().len(), 100_000);
}

#[tokio::test]
async fn binary_output_is_converted_to_text() {
    let mut project = Project::new();
    let result = project.call("exec", json!({"argv": ["printf", r"\377\033[1m"]})).await.unwrap();
    assert_eq!(result["stdout"], "\u{fffd}\u{1b}[1m");
    let result = project.call("exec", json!({"argv": ["true"]})).await.unwrap();
    assert_eq!(result["stdout"], "");
    // Empty output files are reused by the next program, as long as there may be one.
    project.cx.programs = Programs::default();
    assert!(!project.beside("output/call.stdout").exists());
}

#[tokio::test]
async fn a_deadline_and_a_cancellation_keep_what_was_printed() {
    let mut project = Project::new();
    project.cx.deadline = Some(Instant::now() + Duration::from_millis(1500));
    let script = json!({"command": "echo printed; touch started; while :; do sleep 10; done"});
    let error = project.call("shell", script.clone()).await.unwrap_err();
    assert_eq!((error.class(), &error.result().unwrap()["stdout"]), ("timeout", &json!("printed\n")));

    project.cx.deadline = None;
    std::fs::remove_file(project.path("started")).unwrap();
    let mut call = pin!(project.call("shell", script));
    let error: ToolError = tokio::select! {
        result = &mut call => panic!("ended too soon: {result:?}"),
        () = until("the program runs", || project.path("started").exists()) => {
            project.cx.cancel.cancel();
            call.await.unwrap_err()
        }
    };
    assert_eq!((error.class(), &error.result().unwrap()["stdout"]), ("cancelled", &json!("printed\n")));
}

#[tokio::test]
async fn a_dropped_call_leaves_no_process() {
    let project = Project::new();
    {
        let args = json!({"command": "echo $$ > pid; while :; do sleep 10; done"});
        let mut call = pin!(project.call("shell", args));
        tokio::select! {
            result = &mut call => panic!("ended too soon: {result:?}"),
            () = until("the program runs", || project.path("pid").exists() && project.read("pid").ends_with('\n')) => {}
        }
    }
    let process = format!("/proc/{}", project.read("pid").trim());
    until("the process is gone", || !std::path::Path::new(&process).exists()).await;
}

#[tokio::test]
async fn a_script_stops_at_its_first_failing_line() {
    let project = Project::new();
    let run = |command: &str, shell: serde_json::Value| {
        let args = json!({"command": command, "shell": shell});
        project.call("shell", args)
    };
    let two = "false\necho went on";
    assert!(run(two, json!("sh")).await.is_err());
    assert!(run(two, json!("bash")).await.is_err());
    assert_eq!(run("set +e\nfalse\necho went on", json!("sh")).await.unwrap()["stdout"], "went on\n");
    // Calls of version 0.1 have no interpreter and run as they were written.
    let old = project.call("shell", json!({"command": two})).await.unwrap();
    assert_eq!(old["stdout"], "went on\n");
    // Only `bash` sees the failing part of a pipe.
    let pipe = "false | cat\necho went on";
    assert!(run(pipe, json!("sh")).await.is_ok());
    assert!(run(pipe, json!("bash")).await.is_err());
    let printed = run("print all", json!(["printf", "%s.%s", "a"])).await.unwrap();
    assert_eq!(printed["stdout"], "a.print all", "the command is the last argument");
}

#[tokio::test]
async fn a_silent_exit_of_a_program_that_answers_is_explained() {
    let project = Project::new();
    let text = project.refusal("shell", json!({"command": "grep -q x /dev/null", "shell": "sh"})).await;
    assert!(text.contains("that nothing matches") && text.contains("|| true"), "{text}");
    let text = project.refusal("exec", json!({"argv": ["grep", "x", "/dev/null"]})).await;
    assert!(text.contains("that nothing matches"), "{text}");
    let text = project.refusal("shell", json!({"command": "grep x /missing; exit 1", "shell": "sh"})).await;
    assert!(!text.contains("|| true"), "it said why: {text}");
}
