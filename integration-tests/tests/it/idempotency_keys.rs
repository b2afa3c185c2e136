//! A call has the same key at every start.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use serde_json::json;

use crate::support::{Figures, Home, Marks, Run, scale, until};

#[test]
fn one_effect_a_key() {
    let mut figures = Figures::of("one_effect_a_key", 0);
    let count = scale(10_000, 100_000);
    let found = calls_and_keys(count, "");
    assert_eq!(
        found,
        [(count, count), (2 * count, count), (3 * count, 2 * count)],
        "calls and keys, after each run"
    );
    figures.add(format!(
        "{count} calls started twice under {count} keys, and under as many others when reopened"
    ));
    let control = calls_and_keys(100, "FreshKeys");
    assert_eq!(control[1], (200, 200), "the control: keys that are new with each start");
}

fn calls_and_keys(count: usize, fault: &str) -> Vec<(usize, usize)> {
    let home = Home::in_memory().unwrap_or_else(Home::new).with_fault(fault);
    let mut command = Command::new(env!("CARGO_BIN_EXE_taskpawl-keys"));
    home.prepare(command.args([home.store(), &count.to_string()]));
    let run = Run::of(&mut command).ok();
    let pair = |line: &str| {
        let (calls, keys) = line.split_once(' ').unwrap();
        (calls.parse().unwrap(), keys.parse().unwrap())
    };
    run.stdout.lines().map(pair).collect()
}

/// The process is killed between effect and report. The environment of the second start has the key of the first.
#[test]
fn keys_in_the_environment() {
    const TASKS: usize = 20;
    let mut figures = Figures::of("keys_in_the_environment", 0);
    for (fault, keys) in [("", TASKS), ("FreshKeys", 2 * TASKS)] {
        let home = Home::new().with_fault(fault);
        let argv = [env!("CARGO_BIN_EXE_taskpawl-tool"), "effect", home.path("work").to_str().unwrap()]
            .map(str::to_owned);
        let call = json!({"toolName": "exec", "args": {"argv": argv}, "idempotent": true});
        let task = |number| json!({"id": format!("t{number}"), "metadata": {"toolCalls": [call]}});
        home.apply(&json!({"tasks": (0..TASKS).map(task).collect::<Vec<_>>()}).to_string());
        let effects = || Marks::of(&home).keys.values().map(Vec::len).sum::<usize>();
        kill_and_run_again(&home, TASKS, &effects);
        let marks = Marks::of(&home);
        assert_eq!((effects(), marks.keys.len()), (2 * TASKS, keys), "{fault}: {:?}", marks.keys);
        // Keys of different tasks differ.
        assert!(marks.keys.values().all(|tasks| tasks.iter().all(|task| *task == tasks[0])));
    }
    figures.add(format!("{TASKS} programs started again after a kill, under the keys of the first time"));
}

#[test]
fn keys_in_requests() {
    const TASKS: usize = 10;
    let mut figures = Figures::of("keys_in_requests", 0);
    let home = Home::new();
    home.user_config("[tools.http_request]\nhosts = [\"127.0.0.1\"]\n");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let args = json!({"url": url, "method": "POST", "body": "order"});
    let call = json!({"toolName": "http_request", "args": args, "idempotent": true});
    let task = |number| json!({"id": format!("t{number}"), "metadata": {"toolCalls": [call]}});
    home.apply(&json!({"tasks": (0..TASKS).map(task).collect::<Vec<_>>()}).to_string());
    let keys = Mutex::new(Vec::<String>::new());
    thread::scope(|scope| {
        scope.spawn(|| answer_second_requests(&listener, TASKS, &keys));
        kill_and_run_again(&home, TASKS, &|| keys.lock().unwrap().len());
    });
    let mut keys = keys.into_inner().unwrap();
    assert_eq!(keys.len(), 2 * TASKS);
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), TASKS, "{keys:?}");
    figures.add(format!("{TASKS} requests sent again after a kill, under the keys of the first time"));
}

/// Runs until all effects exist, kills that run, and runs to the end.
fn kill_and_run_again(home: &Home, tasks: usize, effects: &dyn Fn() -> usize) {
    home.file("hang", "");
    let mut run = home.program(&["run-all-ready", "--jobs", "64"]);
    let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("every effect is there", || (effects() == tasks).then_some(()));
    run.kill().unwrap();
    run.wait().unwrap();
    std::fs::remove_file(home.path("work/hang")).unwrap();
    home.run(&["run-all-ready"]).ok();
}

/// Reads twice as many requests as there are tasks, and answers only the second half.
fn answer_second_requests(listener: &TcpListener, tasks: usize, keys: &Mutex<Vec<String>>) {
    let mut unanswered = Vec::new();
    for number in 0..2 * tasks {
        let mut connection = listener.accept().unwrap().0;
        let key = key_of(&connection);
        keys.lock().unwrap().push(key);
        if number < tasks {
            unanswered.push(connection);
        } else {
            let answer = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            connection.write_all(answer.as_bytes()).unwrap();
        }
    }
}

fn key_of(connection: &TcpStream) -> String {
    let lines = BufReader::new(connection).lines().map(Result::unwrap).take_while(|line| !line.is_empty());
    let headers: Vec<String> = lines.collect();
    let of = |line: &String| line.to_lowercase().strip_prefix("idempotency-key: ").map(str::to_owned);
    headers.iter().find_map(of).unwrap_or_else(|| panic!("no key in {headers:?}"))
}
