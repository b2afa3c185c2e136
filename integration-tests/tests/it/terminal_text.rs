//! No text acts on a terminal or hides on it. Hostile characters are put into every text that a person, a model, a file or a
//! program can set. Then the output of every command is searched for them, in a pipe and on a terminal.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::process::Stdio;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, OutputModes, Winsize, tcgetattr, tcsetattr, tcsetwinsize};
use serde_json::{Value, json};

use crate::support::{Figures, Home};

/// Returns whether a character acts on a terminal, changes the reading direction, breaks a line, or has no width. The list is
/// independent of the program's own, so that a gap there is found.
fn is_hostile(c: char) -> bool {
    matches!(
        c,
        '\0'..='\u{8}'
            | '\u{b}'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{ad}'
            | '\u{61c}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// Returns every hostile character except NUL, which no argument can contain.
fn hostile_characters() -> Vec<char> {
    ('\u{1}'..='\u{e007f}').filter(|c| is_hostile(*c)).collect()
}

/// Escape sequences that a terminal obeys.
const SEQUENCES: [&str; 8] = [
    "\u{1b}[2J",
    "\u{1b}]0;title\u{7}",
    "\u{1b}[8m",
    "\u{1b}(0",
    "\u{9b}2J",
    "\u{1b}P1\u{1b}\\",
    "\r",
    "\u{8}\u{8}",
];

/// Returns a text with all of them.
fn hostile() -> String {
    let characters = hostile_characters().into_iter().map(String::from);
    let all: Vec<String> = SEQUENCES.iter().map(|text| (*text).to_owned()).chain(characters).collect();
    format!("x{}x", all.join("x"))
}

/// Stores hostile text in every text field.
fn fill(home: &Home, hostile: &str) {
    let call = |tool: &str, args: Value| json!({"id": "c1", "toolName": tool, "args": args});
    let prints = json!({"argv": ["cat", "printed"]});
    let fails = json!({"argv": ["sh", "-c", "cat printed >&2; exit 3"]});
    let tasks = json!([
        {"id": "named", "name": hostile, "description": hostile, "assignee": hostile, "labels": [hostile],
         "metadata": {"context": {hostile: hostile}, hostile: hostile}},
        {"id": "asks", "name": hostile, "approval": {"ask": hostile, "options": [hostile, "no"]},
         "metadata": {"toolCalls": [call("exec", json!({"argv": ["echo", hostile], "stdin": hostile}))]}},
        {"id": "lacks", "name": hostile, "metadata": {"toolCalls": [call(hostile, json!({hostile: hostile}))]}},
        {"id": "prints", "metadata": {"toolCalls": [call("exec", prints)]}},
        {"id": "fails", "name": hostile, "needs": ["prints"], "metadata": {"toolCalls": [call("exec", fails)]}},
        {"id": "logs", "metadata": {"toolCalls": [call("log", json!({"message": hostile}))]}},
        {"id": "says", "metadata": {"toolCalls": [call("fail", json!({"message": hostile}))]}},
        {"id": "each", "forEach": {"in": [hostile]}, "run": "echo ${{ item }}"},
        {"id": "writes", "writes": ["src/**"], "metadata": {"toolCalls": [call("shell", json!({"command": "cat name | xargs -0 touch"}))]}},
        {"id": "below", "needs": ["fails"], "name": hostile, "run": "true"},
    ]);
    home.file("printed", hostile);
    // A file name has no slash and at most 255 bytes.
    home.file("name", "x\u{1b}[2Jx\u{202e}x\u{200b}x\u{9b}x");
    home.file("list.md", &format!("- [ ] {hostile}\n- [x] other {hostile}\n"));
    home.file("wrong.json", &json!({"tasks": [{"id": hostile, "name": hostile, hostile: 1}]}).to_string());
    home.file("unknown.json", &json!({"name": "u", "tasks": [{"id": "a1", "needs": [hostile]}]}).to_string());
    home.user_config("[tools.described]\ndescription = \"\\u001b[2J \\u202e \\u200b\"\nargv = [\"true\", \"\\u001b[2J\"]\n");
    home.file("plan.json", &json!({"name": "hostile", "tools": [hostile], "tasks": tasks}).to_string());
    home.run(&["apply", "plan.json"]).ok();
    home.run(&["note", "named", hostile]);
    home.run(&["run-all-ready", "--sandbox=off"]);
    home.run(&["create", "held", "--id", "held"]).ok();
    home.run(&["claim", "held", "--actor", hostile]);
    home.run(&["create", "ended", "--id", "ended"]).ok();
    home.run(&["done", "ended", "--result", &json!({hostile: hostile}).to_string(), "--note", hostile]);
    home.run(&["create", "stopped", "--id", "stopped"]).ok();
    home.run(&["block", "stopped", "--reason", hostile]);
    home.run(&["create", "given up", "--id", "failed"]).ok();
    home.run(&["fail", "failed", "--note", hostile]);
    home.run(&["todo-rpush", "--agent", "one", hostile]);
}

/// Commands that print stored text.
const PRINTING: [&str; 62] = [
    "list",
    "list --limit 0",
    "list --status blocked",
    "ready",
    "show named",
    "show asks",
    "show lacks",
    "show prints",
    "show fails",
    "show says",
    "show each",
    "show each.0",
    "show writes",
    "show held",
    "show ended",
    "show stopped",
    "show failed",
    "show logs",
    "explain named",
    "explain asks",
    "explain below",
    "explain held",
    "explain stopped",
    "explain lacks",
    "explain --ready",
    "runs",
    "graph",
    "graph --format dot",
    "graph --format mermaid",
    "critical-path",
    "history --limit 0",
    "history named",
    "history --limit 0 --format ndjson",
    "prime",
    "watch --once",
    "logs fails",
    "logs prints",
    "logs each.0",
    "plan check plan.json",
    "plan check wrong.json",
    "plan check unknown.json",
    "apply plan.json --dry-run",
    "apply plan.json --expand",
    "import markdown list.md --dry-run",
    "import markdown list.md --prefix m",
    "export markdown",
    "export taskmaster",
    "run-all-ready --dry-run",
    "run-all-ready --sandbox=off",
    "run-all-ready --dry-run --what-if named=failed",
    "approve --all --dry-run",
    "tools list",
    "tools show described",
    "policy list",
    "config list --origin",
    "doctor",
    "todo prompt",
    "todo-list --agent one",
    "todo-lpeek --agent one",
    "undo --dry-run",
    "retry fails",
    "run fails --sandbox=off",
];

/// Commands with hostile text, `%`, in their arguments, which they quote in their output.
const TAKING: [&str; 46] = [
    "show %",
    "list --status %",
    "list --plan % --limit 1",
    "list --%",
    "%",
    "create A --id %",
    "create B --needs %",
    "create C --tool %",
    "apply %",
    "plan check %",
    "done %",
    "done named --result %",
    "done held --note %",
    "fail %",
    "skip %",
    "block % --reason %",
    "unblock %",
    "retry %",
    "reopen %",
    "cancel %",
    "approve %",
    "reject %",
    "approve asks --answer %",
    "update named --set %=1",
    "update named --context %",
    "update % --name x",
    "add-tool-call named --tool % --args %",
    "add-dependency named %",
    "remove-dependency named %",
    "add-subtask named %",
    "note %",
    "run %",
    "run-all-ready --only %",
    "run-all-ready --only plan:%",
    "run-all-ready --param %",
    "logs %",
    "logs prints --call %",
    "explain %",
    "history %",
    "history --by %",
    "import % %",
    "config get %",
    "tools show %",
    "tools call log --args %",
    "policy check -- %",
    "completions %",
];

/// Output that is data in a pipe, because another program printed or reads it.
fn is_data(args: &[&str]) -> bool {
    matches!(args, ["logs" | "export", ..])
}

/// The outputs that are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outputs {
    All,
    Terminal,
}

/// Runs every command. Returns the number of commands, and those that print a hostile character.
fn found(home: &Home, hostile: &str, outputs: Outputs) -> (usize, Vec<String>) {
    let (mut count, mut found) = (0, Vec::new());
    let lines = PRINTING.iter().chain(&TAKING);
    for line in lines {
        let args: Vec<&str> = line.split(' ').map(|word| if word == "%" { hostile } else { word }).collect();
        let args: Vec<String> = args.iter().map(|word| word.replace('%', hostile)).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let json: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
        let mut look = |way: &str, printed: String| {
            count += 1;
            let characters: BTreeSet<String> =
                printed.chars().filter(|c| is_hostile(*c)).map(|c| c.escape_unicode().to_string()).collect();
            if !characters.is_empty() {
                let characters: Vec<String> = characters.into_iter().take(8).collect();
                found.push(format!("`{line}` {way}: {}", characters.join(" ")));
            }
        };
        if outputs == Outputs::All {
            if !is_data(&args) {
                let run = home.run(&args);
                look("in a pipe", run.stdout + &run.stderr);
            }
            let run = home.run(&json);
            look("as JSON", run.stdout + &run.stderr);
        }
        look("on a terminal", on_terminal(home, &args));
        if outputs == Outputs::All {
            let quiet: Vec<&str> = args.iter().copied().chain(["--quiet"]).collect();
            look("on a terminal, quiet", on_terminal(home, &quiet));
        }
    }
    (count, found)
}

/// Runs the program with a terminal as both of its streams. Returns its output without the program's own styles.
fn on_terminal(home: &Home, args: &[&str]) -> String {
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&person).unwrap();
    unlockpt(&person).unwrap();
    let name = ptsname(&person, Vec::new()).unwrap().into_string().unwrap();
    let program = OpenOptions::new().read(true).write(true).open(name).unwrap();
    let mut modes = tcgetattr(&program).unwrap();
    modes.output_modes.remove(OutputModes::OPOST);
    tcsetattr(&program, OptionalActions::Now, &modes).unwrap();
    tcsetwinsize(&program, Winsize { ws_row: 40, ws_col: 4000, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let mut command = home.program(args);
    command.env("TERM", "xterm").stdin(Stdio::null()).stdout(program.try_clone().unwrap()).stderr(program);
    let mut child = command.spawn().unwrap();
    drop(command);
    let (mut bytes, mut buffer, mut person) = (Vec::new(), [0; 4096], File::from(person));
    // Reading from the terminal fails with EIO once the program has closed its end.
    while let Ok(count @ 1..) = person.read(&mut buffer) {
        bytes.extend_from_slice(&buffer[..count]);
    }
    child.wait().unwrap();
    without_own(&String::from_utf8_lossy(&bytes))
}

/// Removes the program's own styles, and the cursor movements of its progress bar.
fn without_own(text: &str) -> String {
    const STYLES: [&str; 11] = ["0", "1", "2", "31", "32", "33", "35", "36", "4", "90", "38;5;208"];
    const MOVES: [&str; 5] = ["?2026h", "?2026l", "J", "K", "H"];
    // The progress bar starts its frames with a carriage return.
    let text = text.replace("\r\u{1b}[", "\u{1b}[");
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let style = part.split_once('m').filter(|(style, _)| STYLES.contains(style)).map(|(_, rest)| rest);
        let movement = MOVES.iter().find_map(|movement| part.strip_prefix(movement));
        let up = part.split_once('A').filter(|(lines, _)| lines.parse::<u8>().is_ok()).map(|(_, rest)| rest);
        match style.or(movement).or(up) {
            Some(rest) => plain.push_str(rest),
            None => plain.extend(["\u{1b}[", part]),
        }
    }
    plain
}

#[test]
fn no_text_acts_on_a_terminal() {
    let mut figures = Figures::of("no_text_acts_on_a_terminal", 0);
    let hostile = hostile();
    let home = Home::new();
    fill(&home, &hostile);
    let (count, bad) = found(&home, &hostile, Outputs::All);
    assert!(bad.is_empty(), "{} of {count} print hostile text:\n{}", bad.len(), bad.join("\n"));
    let characters = hostile_characters().len();
    figures.add(format!(
        "{characters} characters and {} sequences, {count} times printed: 0 raw",
        SEQUENCES.len()
    ));
    // In a pipe, the output of a program is data.
    let raw = home.run(&["logs", "prints"]);
    assert!(raw.stdout.contains('\u{1b}') && raw.stdout.contains('\u{202e}'), "{raw:?}");
    let control = home.with_fault("RawTerminal");
    let (count, bad) = found(&control, &hostile, Outputs::Terminal);
    figures.add(format!("control: {} with nothing escaped", bad.len()));
    assert!(bad.len() * 3 > count, "the control: {} of {count}", bad.len());
}
