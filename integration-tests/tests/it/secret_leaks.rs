//! Secrets never reach stored data or output. Canaries are put into every input of a call that takes a value, and come back on
//! every output. Then all stored files and all output are searched.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::thread;

use aho_corasick::AhoCorasick;
use serde_json::{Value, json};

use crate::support::{Figures, Home, Random, until};

/// The path of a value through a call.
const KINDS: [&str; 16] = [
    "argv", "env", "stdin", "error", "shell", "quoted", "header", "body", "border", "spilled", "encoded",
    "file", "message", "emitted", "usage", "late",
];

const COUNT: usize = 50;

/// A value that must not be found anywhere, with its path.
struct Canary {
    name: String,
    value: String,
    kind: &'static str,
    /// True if it is an environment variable of the run, given by `--secret-env`; else it is a secret of the configuration.
    is_variable: bool,
}

impl Canary {
    /// Returns the mark that takes its place.
    fn mark(&self) -> String {
        let root = if self.is_variable { "env." } else { "" };
        format!("[redacted:{root}{}]", self.name)
    }
}

fn canaries(random: &mut Random) -> Vec<Canary> {
    let canary = |number: usize| {
        let kind = KINDS[number % KINDS.len()];
        let (one, other) = (random.next_u64(), random.next_u64());
        // Headers, and JSON that a script prints, do not support all characters.
        let value = match (number / KINDS.len(), kind) {
            (0, _) | (_, "header" | "body" | "spilled" | "emitted" | "usage") => {
                format!("cnry{number:02}-{one:016x}")
            }
            (1, _) => format!("cn \"{number:02}'\\ü$`/&<{one:016x}"),
            _ => format!("{one:016x}cnry{number:02}/+{other:016x}=={:0>60}", number * 7919),
        };
        // One of each kind.
        let is_variable = number / KINDS.len() == 1;
        Canary { name: format!("CANARY_{number}"), value, kind, is_variable }
    };
    (0..COUNT).map(canary).collect()
}

fn task(canary: &Canary, url: &str) -> Value {
    let secret = if canary.is_variable {
        format!("${{{{ env.{} }}}}", canary.name)
    } else {
        format!("${{secret:{}}}", canary.name)
    };
    let sh = |script: &str| json!({"toolName": "exec", "args": {"argv": ["sh", "-c", script, "sh", secret]}});
    let call = match canary.kind {
        "argv" => sh(r#"printf 'got %s.' "$1""#),
        "env" => {
            json!({"toolName": "exec", "args": {"argv": ["sh", "-c", "env; env >&2"], "env": {"CANARY": secret}}})
        }
        "stdin" => json!({"toolName": "exec", "args": {"argv": ["cat"], "stdin": format!("a {secret} b")}}),
        "error" => sh(r#"printf 'cannot use %s\n' "$1" >&2; exit 3"#),
        "shell" => {
            json!({"toolName": "shell", "args": {"command": format!("printf '%s\\n' {secret} 'x{secret}y' \"x{secret}y\"")}})
        }
        "quoted" => {
            json!({"toolName": "shell", "args": {"command": format!("printf '%s' {secret} | od -An -tx1 | tr -d ' \\n'; printf '%s' {secret}")}})
        }
        "header" => {
            json!({"toolName": "http_request", "args": {"url": url, "headers": {"X-Key": format!("Key {secret}")}}})
        }
        "body" => {
            json!({"toolName": "http_request", "args": {"url": url, "method": "POST", "json": {"key": secret}}})
        }
        // Pieces are read in 64 KiB. Of a megabyte only head and tail are stored, so the value is repeated.
        "border" => sh(r#"for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20
            do head -c 65530 /dev/zero | tr '\0' x; printf %s "$1"; done"#),
        "spilled" => json!({"toolName": "exec", "args": {
            "argv": ["sh", "-c", r#"printf '{"a": "'; head -c 150000 /dev/zero | tr '\0' x; printf '%s"}' "$CANARY""#],
            "env": {"CANARY": secret},
            "parse": "json",
        }}),
        "encoded" => sh(
            r#"printf %s "$1" | base64; printf 'user:%s' "$1" | base64 -w0; printf 'ab%s' "$1" | base64 -w64"#,
        ),
        "file" => sh(r#"printf %s "$1" > "$TASKPAWL_TASK.txt""#),
        "message" => json!({"toolName": "log", "args": {"message": format!("it is {secret}")}}),
        "emitted" => json!({"toolName": "exec", "emit": true, "args": {
            "argv": ["sh", "-c", r#"printf '{"tasks": [{"name": "x %s", "description": "%s"}]}' "$CANARY" "$CANARY""#],
            "env": {"CANARY": secret}, "parse": "json",
        }}),
        "usage" => json!({"toolName": "exec", "args": {
            "argv": ["sh", "-c", r#"printf '{"usage": {"cost": 1, "model": "%s"}}' "$CANARY""#],
            "env": {"CANARY": secret}, "parse": "json",
        }}),
        _ => json!({"toolName": "exec", "timeout": "2s", "args": {
            "argv": ["sh", "-c", r#"printf %s "$CANARY"; sleep 60"#], "env": {"CANARY": secret},
        }}),
    };
    let mut calls = vec![call];
    if canary.kind == "file" {
        calls.push(json!({"toolName": "read_file", "args": {"path": format!("{}.txt", id(canary))}}));
    }
    if canary.kind == "message" {
        calls.push(json!({"toolName": "fail", "args": {"message": format!("it was {secret}")}}));
    }
    json!({"id": id(canary), "metadata": {"toolCalls": calls}})
}

/// Returns a text in its escaped form inside JSON.
fn json_text(value: &str) -> String {
    let text = json!(value).to_string();
    text[1..text.len() - 1].to_owned()
}

fn id(canary: &Canary) -> String {
    format!("{}-{}", canary.kind, canary.name)
}

/// Returns the encodings in which a value must not be found either.
fn forms(value: &str) -> Vec<Vec<u8>> {
    let hex = value.bytes().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    let mut percent = String::new();
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            percent.push(char::from(byte));
        } else {
            write!(percent, "%{byte:02X}").unwrap();
        }
    }
    let mut forms = vec![value.to_owned(), json_text(value), json_text(&json_text(value)), hex, percent];
    for before in ["", "x", "xy"] {
        let encoded = base64(&format!("{before}{value}"));
        // The first and the last characters depend on the neighbouring bytes, so they are cut off. Long texts are broken into
        // lines.
        let core = &encoded[4..encoded.len() - 4];
        forms.push(core[..core.len().min(44)].to_owned());
    }
    forms.into_iter().map(String::into_bytes).collect()
}

fn base64(text: &str) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoded = String::new();
    for group in text.as_bytes().chunks(3) {
        let bits = group.iter().fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte))
            << (8 * (3 - group.len()));
        for index in 0..=group.len() {
            encoded.push(char::from(LETTERS[bits >> (18 - 6 * index) & 63]));
        }
    }
    encoded
}

/// Returns the names of the found canaries, each with the place.
fn found(canaries: &[Canary], kept: &[(String, Vec<u8>)]) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for canary in canaries {
        let forms = AhoCorasick::new(forms(&canary.value)).unwrap();
        for (place, bytes) in kept {
            if forms.is_match(bytes) {
                found.insert((id(canary), place.clone()));
            }
        }
    }
    found
}

/// Collects every file below a directory, except files of programs in the project and the sources of the secrets.
fn files(directory: &Path, kept: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !matches!(name.as_str(), "work" | "secrets" | "tmp") {
            files(&path, kept);
        } else if path.is_file() {
            kept.push((path.display().to_string(), std::fs::read(&path).unwrap()));
        }
    }
}

/// Configures the sources of the secrets: variables, files and commands.
fn configure(home: &Home, canaries: &[Canary]) -> Vec<(String, String)> {
    let directory = home.path("secrets");
    std::fs::create_dir_all(&directory).unwrap();
    let mut config = "[tools.http_request]\nhosts = [\"127.0.0.1\"]\n".to_owned();
    let notified = home.path("notified");
    writeln!(
        config,
        "[run]\nnotify = [\"sh\", \"-c\", \"cat >> '{}'; cat '{}'\"]",
        notified.display(),
        notified.display()
    )
    .unwrap();
    let mut variables = Vec::new();
    for (number, Canary { name, value, is_variable, .. }) in canaries.iter().enumerate() {
        if *is_variable {
            variables.push((name.clone(), value.clone()));
            continue;
        }
        let path = directory.join(name);
        std::fs::write(&path, format!("{value}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        writeln!(config, "[secrets.{name}]").unwrap();
        match number % 3 {
            0 => {
                writeln!(config, "env = \"SOURCE_{number}\"").unwrap();
                variables.push((format!("SOURCE_{number}"), value.clone()));
            }
            1 => writeln!(config, "file = {}", json!(path)).unwrap(),
            _ => writeln!(config, "command = [\"cat\", {}]", json!(path)).unwrap(),
        }
    }
    home.user_config(&config);
    variables
}

/// Answers every request with its own content, until it is told to end.
fn echo(listener: &TcpListener) {
    for connection in listener.incoming() {
        let mut connection = connection.unwrap();
        let request = request(&mut connection);
        if request.starts_with(b"QUIT") {
            return;
        }
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", request.len());
        connection.write_all(&[head.as_bytes(), &request].concat()).unwrap();
    }
}

fn request(connection: &mut TcpStream) -> Vec<u8> {
    let mut request = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&request).to_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.trim().parse().unwrap()) {
                return request;
            }
        }
        match connection.read(&mut piece).unwrap() {
            0 => return request,
            read => request.extend_from_slice(&piece[..read]),
        }
    }
}

/// Runs all calls that could leak a canary, and returns stored files and output, among it that of commands about tasks of `shown`.
fn give_away(canaries: &[Canary], shown: &[Canary], fault: &str, is_json: bool) -> Vec<(String, Vec<u8>)> {
    let home = Home::new().with_fault(fault);
    let home = if is_json { home.with_json() } else { home };
    let variables = configure(&home, canaries);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let url = format!("http://{address}/");
    let tasks: Vec<Value> = canaries.iter().map(|canary| task(canary, &url)).collect();
    home.apply(&json!({"name": "canaries", "tasks": tasks}).to_string());
    let said = |args: &[&str]| {
        let run = crate::support::Run::of(home.program(args).envs(variables.clone()));
        (args.join(" "), format!("{}{}", run.stdout, run.stderr).into_bytes())
    };
    let mut kept = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| echo(&listener));
        let passed = canaries.iter().filter(|canary| canary.is_variable);
        let passed: Vec<&str> = passed.flat_map(|canary| ["--secret-env", &canary.name]).collect();
        kept.push(said(&[&["run-all-ready", "--dry-run"], &passed[..]].concat()));
        kept.push(said(&[&["run-all-ready", "--format", "ndjson", "--jobs", "8"], &passed[..]].concat()));
        TcpStream::connect(address).unwrap().write_all(b"QUIT\r\n\r\n").unwrap();
    });
    kept.push(said(&["list", "--json", "--limit", "0"]));
    kept.push(said(&["history", "--json", "--limit", "0"]));
    kept.push(said(&["runs", "--json"]));
    let said_about = |canary: &Canary| {
        let id = id(canary);
        let commands: [&[&str]; 6] = [
            &["show", &id],
            &["show", &id, "--json"],
            &["explain", &id],
            &["explain", &id, "--json"],
            &["logs", &id, "--raw"],
            &["logs", &id, "--json"],
        ];
        commands.map(said)
    };
    // Hundreds of programs, which would take minutes one after the other.
    thread::scope(|scope| {
        let said_about_all = |canaries: &[Canary]| canaries.iter().flat_map(said_about).collect::<Vec<_>>();
        let parts = shown.chunks(shown.len().div_ceil(4));
        let threads: Vec<_> = parts.map(|part| scope.spawn(move || said_about_all(part))).collect();
        kept.extend(threads.into_iter().flat_map(|thread| thread.join().unwrap()));
    });
    files(&home.path(""), &mut kept);
    kept
}

#[test]
fn no_canary_is_stored_or_printed() {
    let mut figures = Figures::of("no_canary_is_stored_or_printed", 0);
    let mut random = Random::new(11);
    let canaries = canaries(&mut random);
    for is_json in [false, true] {
        let kept = give_away(&canaries, &canaries, "", is_json);
        let bytes: usize = kept.iter().map(|(_, bytes)| bytes.len()).sum();
        assert_eq!(found(&canaries, &kept), BTreeSet::new());
        let all: Vec<u8> = kept.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
        let is_marked = |canary: &&Canary| AhoCorasick::new([canary.mark()]).unwrap().is_match(&all);
        let marks = canaries.iter().filter(is_marked);
        let unmarked: Vec<String> = canaries.iter().map(id).collect();
        assert_eq!(marks.count(), COUNT, "each was taken out somewhere: {unmarked:?}");
        figures.add(format!("{COUNT} canaries, {} places, {} MiB: 0 found", kept.len(), bytes >> 20));
    }
    // One of each kind is enough to see that commands would print them.
    let control = found(&canaries, &give_away(&canaries, &canaries[..KINDS.len()], "KeepSecrets", false));
    let names: BTreeSet<&String> = control.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), COUNT, "the control: nothing is taken out");
    figures.add(format!("the control finds all {COUNT} in {} places", control.len()));
}

/// The run is killed after its program has printed a secret. The next command redacts the output before any command can read it.
#[test]
fn a_killed_run_leaves_no_canary() {
    let canary = |value: &str, kind| Canary {
        name: "CANARY_0".to_owned(),
        value: value.to_owned(),
        kind,
        is_variable: false,
    };
    for (fault, is_known) in [("", true), ("", false), ("KeepSecrets", true)] {
        let home = Home::new().with_fault(fault);
        let canary = canary("cnry-killed-0123456789", "killed");
        let mut variables = configure(&home, &[canary]);
        let args =
            json!({"argv": ["sh", "-c", "printf 'got %s' \"$1\"; sleep 1000", "sh", "${secret:CANARY_0}"]});
        home.apply(&json!({"tasks": [{"id": "t", "metadata": {"toolCalls": [{"id": "c", "toolName": "exec", "args": args}]}}]}).to_string());
        let mut run = home.program(&["run-all-ready"]);
        let mut run =
            run.envs(variables.clone()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut kept = Vec::new();
        let output = until("the program has printed", || {
            kept.clear();
            files(&home.path(""), &mut kept);
            kept.iter()
                .find(|(path, bytes)| path.ends_with(".stdout") && !bytes.is_empty())
                .map(|(path, _)| path.clone())
        });
        let shown = crate::support::Run::of(home.program(&["logs", "t"]).envs(variables.clone()));
        assert!(!shown.stdout.contains("cnry-killed"), "{shown:?}");
        run.kill().unwrap();
        run.wait().unwrap();
        if !is_known {
            variables.clear();
        }
        let next = || crate::support::Run::of(home.program(&["run-all-ready"]).envs(variables.clone()));
        until("the dead run is recovered", || (next().code == Some(3)).then_some(()));
        let text = std::fs::read_to_string(&output).unwrap();
        let expected = match (fault, is_known) {
            ("", true) => "got [redacted:CANARY_0]".to_owned(),
            ("", false) => "[removed: its run was killed before it ended, and failed to read secret `CANARY_0`: the environment variable `SOURCE_0` is not set]\n".to_owned(),
            _ => "got cnry-killed-0123456789".to_owned(),
        };
        assert_eq!(text, expected);
    }
}
