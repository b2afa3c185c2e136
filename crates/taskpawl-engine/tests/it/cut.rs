//! Results that are incomplete: no expression may read a cut value as if it were whole.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use taskpawl_model::command::{Command, Request};
use taskpawl_model::task::{Status, Task};
use taskpawl_model::view::{View, ViewResult};
use taskpawl_store::{Location, Outcome, Reply, Store, StoreError, open};

use crate::support::Lab;

/// Calls whose result is cut: name, call, and the path of the part that is cut.
const PRODUCERS: &[(&str, &str, &str)] = &[
    ("exec", "{exec: {argv: [seq, -f, 'line %01000g', '1', '400']}}", ".stdout"),
    ("shell", "{shell: {command: \"seq -f 'line %01000g' 1 400 >&2\"}}", ".stderr"),
    ("read", "{read_file: {path: big.txt}}", ".content"),
    ("glob", "{glob: {pattern: 'd/*'}}", ".paths"),
    ("list", "{list_dir: {path: d}}", ".entries"),
    ("grep", "{grep: {pattern: '1', path: big.txt}}", ".matches"),
    ("line", "{grep: {pattern: 'long', path: long.txt}}", ".matches[0].text"),
    ("own", "{big: {}}", ".text"),
    ("whole", "{big: {}}", ""),
    ("described", "{lines: {}}", ".stdout"),
    ("http", "{http_request: {url: 'SERVER'}}", ".body"),
];

/// All positions in which an expression can use a value: fields of a task, with `@` for the value.
const WAYS: &[(&str, &str)] = &[
    ("argument", "call: {log: {message: '${{ @ | string }}'}}"),
    ("text", "call: {log: {message: 'n ${{ @ | length }}'}}"),
    ("command", "call: {shell: {command: 'echo ${{ @ | length }}'}}"),
    ("program", "call: {exec: {argv: [echo, '${{ @ | length | string }}']}}"),
    ("callWhen", "calls: [{toolName: log, args: {message: a}, when: '${{ @ | length > 0 }}'}]"),
    ("when", "when: '${{ @ | length > 0 }}', call: {ok: {}}"),
    ("list", "forEach: {in: '${{ [@] }}'}, call: {ok: {}}"),
    ("element", "forEach: {in: ['${{ @ }}']}, call: {ok: {}}"),
    ("key", "cache: {key: '${{ @ | length }}'}, call: {ok: {}}"),
    ("until", "repeat: {until: '${{ @ | length > 0 }}', max: 1}, call: {ok: {}}"),
];

/// Names by which other tasks refer to the result of a call of task `P`.
const NAMES: &[(&str, &str)] =
    &[("r", "tasks.P.result"), ("c", "tasks.P.context.c1"), ("l", "tasks.P.results[0]")];

fn make_files(root: &Path) {
    let lines: String = (1..=60_000).fold(String::new(), |mut text, n| {
        let _ = writeln!(text, "{n}");
        text
    });
    fs::write(root.join("big.txt"), lines).unwrap();
    fs::write(root.join("long.txt"), format!("long {}\n", "x".repeat(600))).unwrap();
    fs::create_dir(root.join("d")).unwrap();
    for n in 0..=10_000 {
        fs::write(root.join("d").join(format!("f{n:05}")), "").unwrap();
    }
}

/// Starts a server on the loopback interface that sends the given number of responses, each larger than a stored
/// result.
fn serve(answers: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let body = "body\n".repeat(60_000);
        for stream in listener.incoming().take(answers) {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]).unwrap();
            let head =
                format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
            // The client closes the connection once it has read as much as it keeps.
            let _ = stream.write_all((head + &body).as_bytes());
        }
    });
    url
}

/// Returns a plan that uses every value of every producer in every position. `as_read` turns the path of a value into
/// an expression.
fn plan(as_read: impl Fn(&str) -> String) -> (String, Vec<String>) {
    let url = serve(2);
    let (mut plan, mut ids) = ("tasks:\n".to_owned(), Vec::new());
    for (producer, call, field) in PRODUCERS {
        let call = &call.replace("SERVER", &url);
        writeln!(plan, "  - {{id: {producer}, call: {call}}}").unwrap();
        for (name, path) in NAMES {
            let value = as_read(&format!("{}{field}", path.replace('P', producer)));
            for (way, fields) in WAYS {
                let id = format!("{producer}-{name}-{way}");
                writeln!(plan, "  - {{id: {id}, needs: {producer}, {}}}", fields.replace('@', &value))
                    .unwrap();
                ids.push(id);
            }
        }
        let (id, value) = (format!("{producer}-own"), as_read(&format!("context.saved{field}")));
        let first = call.trim_end_matches('}');
        let saved = format!("{first}}}, saveAs: saved}}");
        let log = format!("{{log: {{message: '${{{{ {value} | string }}}}'}}}}");
        writeln!(plan, "  - {{id: {id}, calls: [{saved}, {log}]}}").unwrap();
        ids.push(id);
    }
    (plan, ids)
}

/// Returns the error class and the message of a failed task.
fn failure(task: &Task) -> Option<(String, String)> {
    let call = task.metadata.tool_calls.iter().find(|call| call.error_class.is_some());
    let class = task.error_class.map(|class| class.to_string());
    let class = class.or_else(|| call.and_then(|call| call.error_class.clone()))?;
    Some((class, task.error.clone().unwrap_or_default()))
}

#[tokio::test]
async fn no_expression_passes_on_a_cut_value() {
    let (text, ids) = plan(str::to_owned);
    let lab = Lab::new(&text);
    make_files(lab.files.path());
    lab.run_jobs(4).await;
    for id in &ids {
        let task = lab.task(id);
        let (class, error) = failure(&task).unwrap_or_default();
        assert_eq!((task.status, class.as_str()), (Status::Failed, "truncated"), "{id}: {error}");
        assert!(error.contains("`keep: 4MiB`") && error.contains("| partial`"), "{id}: {error}");
    }
    assert_eq!(ids.len(), 341);
}

#[tokio::test]
async fn every_expression_passes_on_a_part_that_is_declared_partial() {
    let (text, ids) = plan(|path| format!("({path} | partial)"));
    let lab = Lab::new(&text);
    make_files(lab.files.path());
    lab.run_jobs(4).await;
    assert_hands_on(&lab, &ids);
}

/// Positive control: without the marks in the store, every position passes on the part as if it were the whole.
#[tokio::test]
async fn without_the_marks_every_expression_passes_on_a_cut_value() {
    let (text, ids) = plan(str::to_owned);
    let lab = Lab::on(Arc::new(Unmarked(open(&Location::Memory))), &text);
    make_files(lab.files.path());
    lab.run_jobs(4).await;
    assert_hands_on(&lab, &ids);
}

fn assert_hands_on(lab: &Lab, ids: &[String]) {
    // The stand-in for a result that is kept in a file has its own fields instead of those of the result.
    let (without, with): (Vec<&String>, Vec<_>) = ids.iter().partition(|id| id.starts_with("own-"));
    for id in with {
        assert_eq!(lab.task(id).status, Status::Done, "{id}: {:?}", failure(&lab.task(id)));
    }
    for id in without {
        assert_ne!(failure(&lab.task(id)).unwrap().0, "truncated", "{id}");
    }
}

/// A store that loses the information which results were cut.
#[derive(Debug)]
struct Unmarked(Arc<dyn Store>);

fn unmarked(mut requests: Vec<Request>) -> Vec<Request> {
    for request in &mut requests {
        if let Command::Round(round) = &mut request.command {
            round.reports.iter_mut().for_each(|report| report.cut.clear());
        }
    }
    requests
}

impl Store for Unmarked {
    fn read(&self, look: &mut dyn FnMut(&dyn View) -> ViewResult<()>) -> Result<(), StoreError> {
        self.0.read(look)
    }

    fn submit(&self, requests: Vec<Request>, reply: Reply) {
        self.0.submit(unmarked(requests), reply);
    }

    fn write(&self, requests: Vec<Request>) -> Result<Vec<Outcome>, StoreError> {
        self.0.write(unmarked(requests))
    }

    fn wait_change(&self, since: u64, timeout: Duration) -> Result<u64, StoreError> {
        self.0.wait_change(since, timeout)
    }

    fn warnings(&self) -> Result<Vec<String>, StoreError> {
        self.0.warnings()
    }
}

const KEPT: &str = "
tasks:
  - {id: exec, call: {exec: {argv: [seq, -f, 'line %01000g', '1', '400']}, keep: 4MiB}}
  - {id: read, call: {read_file: {path: big.txt}, keep: 4MiB}}
  - {id: glob, call: {glob: {pattern: 'd/*'}, keep: 4MiB}}
  - {id: list, call: {list_dir: {path: d}, keep: 4MiB}}
  - {id: grep, call: {grep: {pattern: '1', path: big.txt}, keep: 4MiB}}
  - {id: line, call: {grep: {pattern: long, path: long.txt}, keep: 1MiB}}
  - {id: own, call: {big: {}, keep: 4MiB}}
  - id: n
    needs: [exec, read, glob, list, grep, line, own]
    call:
      ok:
        exec: '${{ tasks.exec.result.stdout | lines | length }}'
        read: '${{ tasks.read.result.content | lines | length }}'
        glob: '${{ tasks.glob.result.paths | length }}'
        list: '${{ tasks.list.result.entries | length }}'
        line: '${{ tasks.line.result.matches[0].text | length }}'
        own: '${{ tasks.own.result.text | length }}'
  - {id: g, needs: grep, call: {ok: {grep: '${{ tasks.grep.result.matches | length }}'}}}
";

#[tokio::test]
async fn a_result_within_keep_is_read_whole() {
    let lab = Lab::new(KEPT);
    make_files(lab.files.path());
    assert_eq!(lab.run().await.exit, 0, "{}", lab.states());
    let args = |id| lab.task(id).metadata.tool_calls[0].evaluated_args.clone().unwrap();
    assert_eq!(
        json!(args("n")),
        json!({"exec": 400, "read": 60_000, "glob": 10_001, "list": 10_001, "line": 605, "own": 307_200})
    );
    let with_one = (1..=60_000).filter(|n: &u32| n.to_string().contains('1')).count();
    assert_eq!(json!(args("g")), json!({"grep": with_one}));
    assert!(lab.task("exec").metadata.tool_calls[0].cut.is_empty());
}

#[tokio::test]
async fn a_limit_that_the_author_wrote_does_not_count_as_cut() {
    let lab = Lab::new(
        "
        tasks:
          - {id: grep, call: {grep: {pattern: '1', path: big.txt, limit: 3}}}
          - {id: read, call: {read_file: {path: big.txt, offset: 2, limit: 2}}}
          - {id: exec, call: {exec: {argv: [seq, '1', '4000']}, keep: 1KiB}}
          - id: n
            needs: [grep, read, exec]
            call: {ok: {n: '${{ tasks.grep.result.matches | length }}', of: '${{ tasks.read.result }}', out: '${{ tasks.exec.result.stdout }}'}}
        ",
    );
    make_files(lab.files.path());
    assert_eq!(lab.run().await.exit, 0, "{}", lab.states());
    let args = lab.task("n").metadata.tool_calls[0].evaluated_args.clone().unwrap();
    assert_eq!((&args["n"], &args["of"]["content"]), (&json!(3), &json!("2\n3\n")));
    assert!(args["out"].as_str().unwrap().contains("bytes left out"));
}

#[tokio::test]
async fn a_result_beyond_keep_is_cut() {
    let lab = Lab::new(
        "
        tasks:
          - {id: a, call: {exec: {argv: [seq, -f, 'line %01000g', '1', '400']}, keep: 300KiB}}
          - {id: b, call: {big: {}, keep: 200KiB}}
          - {id: x, needs: a, call: {ok: {t: '${{ tasks.a.result.stdout }}'}}}
          - {id: y, needs: b, call: {ok: {t: '${{ tasks.b.result.text }}'}}}
        ",
    );
    lab.run().await;
    for id in ["x", "y"] {
        assert_eq!(failure(&lab.task(id)).unwrap().0, "truncated", "{id}");
    }
}

#[tokio::test]
async fn intact_parts_of_a_cut_result_can_be_read() {
    let lab = Lab::new(
        "
        tasks:
          - {id: a, call: {exec: {argv: [seq, -f, 'line %01000g', '1', '400']}}}
          - {id: b, call: {big: {}}}
          - id: x
            needs: [a, b]
            call:
              ok:
                code: '${{ tasks.a.result.exitCode }}'
                err: '${{ tasks.a.result.stderr }}'
                file: '${{ tasks.b.result.resultFile is string and tasks.b.result.truncated }}'
                there: '${{ tasks.a.result.stdout is defined }}'
                some: '${{ (tasks.a.result.stdout | partial | lines)[0] | length }}'
        ",
    );
    assert_eq!(lab.run().await.exit, 0, "{}", lab.states());
    let args = lab.task("x").metadata.tool_calls[0].evaluated_args.clone().unwrap();
    assert_eq!(json!(args), json!({"code": 0, "err": "", "file": true, "there": true, "some": 1005}));
    assert_eq!(lab.task("a").metadata.tool_calls[0].cut, ["/stdout"]);
    assert_eq!(lab.task("b").metadata.tool_calls[0].cut, [""]);
}

#[tokio::test]
async fn results_of_items_and_cached_results_stay_marked_as_cut() {
    let lab = Lab::new(
        "
        tasks:
          - {id: each, forEach: {in: [1, 2]}, call: {exec: {argv: [seq, -f, 'line %01000g', '1', '400']}}}
          - {id: cached, cache: {key: '1'}, call: {exec: {argv: [seq, -f, 'line %01000g', '1', '400']}}}
          - {id: code, needs: each, call: {ok: {n: '${{ tasks.each.results[1].exitCode }}'}}}
          - {id: all, needs: each, call: {ok: {n: '${{ tasks.each.results | length }}'}}}
          - {id: one, needs: each, call: {ok: {n: '${{ tasks.each.results[1].stdout }}'}}}
          - {id: again, needs: cached, call: {ok: {n: '${{ tasks.cached.result.stdout }}'}}}
        ",
    );
    lab.run().await;
    lab.manager.reopen(&["cached".to_owned()], true).unwrap();
    lab.run().await;
    assert!(lab.manager.history(Some("cached"), 0, 0).unwrap().iter().any(|event| {
        matches!(
            &event.kind,
            taskpawl_model::task::EventKind::Status { cause: taskpawl_model::task::Cause::Cached, .. }
        )
    }));
    assert_eq!(lab.task("code").status, Status::Done);
    for id in ["all", "one", "again"] {
        assert_eq!(failure(&lab.task(id)).unwrap().0, "truncated", "{id}");
    }
}
