//! Reports and traces of runs, from the command line.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::Value;

use crate::harness::Cli;

const PLAN: &str = "name: demo
tasks:
  - {id: a, name: First, run: echo one}
  - id: b
    needs: a
    run: |
      echo '::error::forged' >&2
      echo 'secret ##[error]words' >&2
      exit 3
  - {id: c, needs: b, run: echo three}
";

fn with_plan() -> Cli {
    let cli = Cli::new().with_programs();
    cli.file("plan.yaml", PLAN);
    cli
}

fn read(cli: &Cli, name: &str) -> String {
    fs::read_to_string(cli.path("work").join(name)).unwrap()
}

#[test]
fn a_report_has_the_older_failures_because_of_which_a_run_ends() {
    let cli = Cli::new().with_programs();
    let list = "${{ range(tasks.a.result.stdout) }}";
    cli.file(
        "plan.yaml",
        &format!(
            "name: p\ntasks: [{{id: a, run: echo x}}, {{id: b, needs: a, forEach: '{list}', run: 'true'}}]"
        ),
    );
    assert_eq!(cli.run(&["run-all-ready", "plan.yaml"]).code, Some(1));
    // With --retry-failed the list is evaluated again, and fails, before the run begins.
    for more in [&[][..], &["--retry-failed"]] {
        let args = ["run-all-ready", "plan.yaml", "--report", "junit=j.xml"];
        let run = cli.run(&[&args[..], more].concat());
        assert_eq!(run.code, Some(1), "{run}");
        let report = read(&cli, "j.xml");
        assert!(report.contains("tests=\"1\" failures=\"1\"") && report.contains("line=\"2\""), "{report}");
    }
}

#[test]
fn a_run_writes_its_reports_and_a_later_command_the_same() {
    let cli = with_plan();
    let run = cli.run(&[
        "run-all-ready",
        "plan.yaml",
        "--report",
        "html=run.html",
        "--report",
        "junit=run.xml",
        "--report",
        "md=run.md",
    ]);
    assert_eq!(run.code, Some(1), "{run}");
    let page = read(&cli, "run.html");
    assert!(page.contains("exit code 3") && !page.contains("secret"), "{page}");
    let xml = read(&cli, "run.xml");
    let document = roxmltree::Document::parse(&xml).unwrap();
    let failed = document.descendants().find(|node| node.has_tag_name("failure")).unwrap();
    assert_eq!(failed.parent().unwrap().attribute("line"), Some("4"), "{xml}");
    cli.run(&["report", "--html", "again.html", "--junit", "again.xml", "--md", "again.md"]).ok();
    for (first, again) in [("run.html", "again.html"), ("run.xml", "again.xml"), ("run.md", "again.md")] {
        assert_eq!(read(&cli, first), read(&cli, again));
    }
    let shown = cli.run(&["report", "--md", "-", "--include", "output"]).ok();
    assert!(shown.stdout.contains("secret") && shown.stdout.contains("exit codes: output."), "{shown}");
}

#[test]
fn annotations_have_the_line_of_the_task_and_no_tool_makes_its_own() {
    let cli = with_plan();
    let run = cli.run(&["run-all-ready", "plan.yaml", "--report", "github", "--include", "output,errors"]);
    assert_eq!(run.code, Some(1), "{run}");
    let all = format!("{}\n{}", run.stdout, run.stderr);
    let commands: Vec<&str> = all.lines().filter(|line| line.trim_start().starts_with("::")).collect();
    assert_eq!(commands.len(), 1, "{run}");
    assert!(commands[0].starts_with("::error file=plan.yaml,line=4,title=b failed::"), "{run}");
    assert!(run.stderr.contains(": :error::forged"), "the failure is shown, harmless: {run}");
    assert!(!run.stderr.contains("##["), "{run}");
    let cli = cli.with("GITHUB_ACTIONS", "true");
    let logs = cli.run(&["logs", "b"]).ok();
    assert!(!logs.stdout.lines().any(|line| line.trim_start().starts_with("::")), "{logs}");
    let json = cli.run(&["logs", "b", "--json"]).ok();
    assert!(!json.stdout.contains("##["), "{json}");
    assert!(json.json()["data"].to_string().contains("##[error]words"), "the data is the same: {json}");
}

#[test]
fn a_report_that_cannot_be_written_stops_the_run_before_it_starts() {
    let cli = with_plan();
    let run = cli.run(&["run-all-ready", "plan.yaml", "--report", "html=missing/run.html"]);
    assert_eq!(run.code, Some(2), "{run}");
    assert_eq!(cli.run(&["runs", "--json"]).ok().json()["data"], Value::Array(Vec::new()));
    let wrong = cli.run(&["run-all-ready", "plan.yaml", "--report", "pdf=x"]);
    assert_eq!(wrong.code, Some(2), "{wrong}");
    assert_eq!(cli.run(&["report", "--md", "-"]).code, Some(2), "there is no run");
    let alone = cli.run(&["run-all-ready", "plan.yaml", "--include", "output"]);
    assert_eq!(alone.code, Some(2), "{alone}");
    let alone = cli.run(&["run-all-ready", "plan.yaml", "--dry-run", "--include", "output"]);
    assert_eq!(alone.code, Some(2), "{alone}");
    let both = cli.run(&["run-all-ready", "plan.yaml", "--report", "github", "--json"]);
    assert_eq!(both.code, Some(2), "{both}");
}

#[test]
fn a_trace_has_every_call_and_goes_only_to_a_collector_of_the_user() {
    let cli = with_plan();
    cli.run(&["run-all-ready", "plan.yaml"]);
    let trace: Value = serde_json::from_str(&cli.run(&["trace"]).ok().stdout).unwrap();
    let spans = trace["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone();
    assert_eq!(spans.len(), 5, "{trace:#}");
    cli.run(&["trace", "--format", "chrome", "-o", "trace.json"]).ok();
    let chrome: Value = serde_json::from_str(&read(&cli, "trace.json")).unwrap();
    assert_eq!(chrome["traceEvents"].as_array().unwrap().len(), 5);
    let refused = cli.run(&["trace", "--to", "http://127.0.0.1:9"]);
    assert_eq!(refused.code, Some(2), "{refused}");
    cli.file("taskpawl.toml", "[trace]\ncollectors = ['http://127.0.0.1:9']\n");
    let of_project = cli.run(&["trace", "--to", "http://127.0.0.1:9"]);
    assert_eq!(of_project.code, Some(2), "a project lists no collector: {of_project}");
}

#[test]
fn programs_know_the_span_of_their_call() {
    let cli = Cli::new().with_programs();
    cli.file("plan.yaml", "tasks: [{id: a, run: 'echo $TRACEPARENT'}]");
    cli.run(&["run-all-ready", "plan.yaml"]).ok();
    let given = cli.run(&["logs", "a", "--raw"]).ok().stdout;
    let trace: Value = serde_json::from_str(&cli.run(&["trace"]).ok().stdout).unwrap();
    let call = &trace["resourceSpans"][0]["scopeSpans"][0]["spans"][2];
    let (trace_id, span_id) = (call["traceId"].as_str().unwrap(), call["spanId"].as_str().unwrap());
    assert_eq!(given.trim(), format!("00-{trace_id}-{span_id}-01"), "{call:#}");
}

/// A collector on loopback that keeps the bodies of its requests.
fn collector() -> (String, std::sync::mpsc::Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, bodies) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            // A client keeps its connection for several requests.
            while let Some(body) = request(&mut stream) {
                sender.send(body).unwrap();
                stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
            }
        }
    });
    (url, bodies)
}

/// Returns the body of the next request; `None` at the end of the connection.
fn request(stream: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let (mut length, mut line) = (0, String::new());
    while line != "\r\n" {
        line.clear();
        if stream.read_line(&mut line).unwrap() == 0 {
            return None;
        }
        let header = line.to_lowercase();
        length = header.strip_prefix("content-length:").map_or(length, |value| value.trim().parse().unwrap());
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    Some(body)
}

/// Returns the number of spans that end with a name, as protobuf has it.
fn count(bodies: &[Vec<u8>], name: &str) -> usize {
    bodies.iter().map(|body| String::from_utf8_lossy(body).matches(name).count()).sum()
}

#[test]
fn a_collector_gets_every_span_while_the_run_goes_on_and_later() {
    let (url, bodies) = collector();
    let cli = Cli::new().with_programs();
    let config = cli.path(".config/taskpawl/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(config, format!("[trace]\ncollectors = ['{url}', 'http://127.0.0.1:9']\n")).unwrap();
    cli.file("plan.yaml", PLAN);
    let reported = ["--report", "md=run.md", "--include", "errors"];
    let run = cli.run(&[&["run-all-ready", "plan.yaml", "--otlp", &url], &reported[..]].concat());
    assert_eq!(run.code, Some(1), "{run}");
    let live: Vec<Vec<u8>> = bodies.try_iter().collect();
    assert_eq!(count(&live, "execute_tool shell"), 2);
    assert_eq!((count(&live, "task a"), count(&live, "task b"), count(&live, "taskpawl.run.end")), (1, 1, 1));
    let sent = cli.run(&["trace", "--to", &url]).ok();
    assert!(sent.stderr.contains("5 spans were sent"), "{sent}");
    assert_eq!(count(&bodies.try_iter().collect::<Vec<_>>(), "execute_tool shell"), 2);
    let missed = cli.run(&["run-all-ready", "plan.yaml", "--fresh", "--otlp", "http://127.0.0.1:9"]);
    assert_eq!(missed.code, Some(1), "the run keeps its exit code: {missed}");
    assert!(missed.stderr.contains("warning: not all spans were sent"), "{missed}");
    assert_eq!(cli.run(&["trace", "--to", "http://127.0.0.1:9"]).code, Some(8));
}

#[test]
fn a_past_run_is_shown_again_as_it_was() {
    let cli = with_plan();
    let run = cli.run(&["run-all-ready", "plan.yaml", "--jobs", "1"]);
    let again = cli.run(&["replay", "--speed", "1000"]).ok();
    let marks = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.starts_with(['✓', '✗', '!']));
        lines.map(|line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ")).collect()
    };
    assert_eq!(marks(&again.stderr), ["✓ a", "✗ b", "! c"], "{again}");
    assert_eq!(marks(&again.stderr), marks(&run.stderr), "{run}");
    assert!(again.stdout.contains("exit 1, 1 failed, 1 blocked, 1 done"), "{again}");
    assert_eq!(cli.run(&["replay", "--speed", "0"]).code, Some(2));
}

#[test]
fn one_document_goes_to_standard_output() {
    let cli = Cli::new().with_programs();
    cli.file("plan.yaml", "tasks: [{id: a, run: 'true'}]\n");
    cli.run(&["run-all-ready", "plan.yaml", "--quiet"]).ok();
    for args in [
        &["report", "--md", "-", "--github"][..],
        &["report", "--md", "-", "--junit", "-"],
        &["report", "--md", "-", "--json"],
        &["report", "--github", "--json"],
    ] {
        assert_eq!(cli.run(args).code, Some(2), "{args:?}");
    }
    for (args, field) in [
        (&["report", "--md", "a.md"][..], "files"),
        (&["trace"], "resourceSpans"),
        (&["trace", "-o", "-"], "resourceSpans"),
        (&["trace", "--format", "chrome"], "traceEvents"),
        (&["trace", "-o", "trace.json"], "files"),
        (&["replay", "--speed", "1000"], "counts"),
        (&["export", "markdown"], "files"),
        (&["export", "markdown", "-"], "files"),
        (&["export", "markdown", "a.tasks.md"], "added"),
    ] {
        let run = cli.run(&[args, &["--json"]].concat()).ok();
        assert!(run.json()["data"].get(field).is_some(), "{args:?}: {run}");
    }
    assert!(!cli.path("work/-").exists());
}
