//! Tests on a terminal: questions, colours, and lines that fit the width.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::{Command, ExitStatus, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, OutputModes, Winsize, tcgetattr, tcsetattr, tcsetwinsize};

use crate::harness::Cli;

/// Returns both ends of a pseudo-terminal: that of the person and that of the program.
pub(crate) fn terminal() -> (File, File) {
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&person).unwrap();
    unlockpt(&person).unwrap();
    let name = ptsname(&person, Vec::new()).unwrap().into_string().unwrap();
    let program = OpenOptions::new().read(true).write(true).open(name).unwrap();
    let mut modes = tcgetattr(&program).unwrap();
    // Without `OPOST` the terminal does not turn `\n` into `\r\n`, so the output arrives unchanged.
    modes.output_modes.remove(OutputModes::OPOST);
    tcsetattr(&program, OptionalActions::Now, &modes).unwrap();
    (File::from(person), program)
}

/// Runs the program with standard output on a terminal of `columns`.
pub(crate) fn on_terminal(cli: &Cli, columns: &str, args: &[&str]) -> String {
    let (person, program) = terminal();
    let mut command = cli.command(&cli.path("work"), args);
    command.env("COLUMNS", columns).stdin(Stdio::null()).stdout(program).stderr(Stdio::null());
    let (text, status) = to_its_end(command, person);
    assert!(status.success(), "{args:?}");
    text
}

/// Runs the program for a person who types these lines, and returns what it printed: standard output, then standard error.
pub(crate) fn answered(cli: &Cli, args: &[&str], lines: &[&str]) -> String {
    let (mut person, program) = terminal();
    let mut command = cli.command(&cli.path("work"), args);
    command.stdin(program.try_clone().unwrap()).stdout(Stdio::piped()).stderr(program);
    let child = command.spawn().unwrap();
    drop(command);
    for line in lines {
        person.write_all(format!("{line}\n").as_bytes()).unwrap();
    }
    let output = child.wait_with_output().unwrap();
    let (mut text, mut buffer) = (output.stdout, [0; 4096]);
    while let Ok(count @ 1..) = person.read(&mut buffer) {
        text.extend_from_slice(&buffer[..count]);
    }
    String::from_utf8(text).unwrap()
}

/// Runs a program to its end, and returns its output. The output must fit into the buffer of the terminal,
/// which is read only afterwards.
fn to_its_end(mut command: Command, mut person: File) -> (String, ExitStatus) {
    let status = command.spawn().unwrap().wait().unwrap();
    // Reading ends with EIO once every copy of the program's end is closed. `command` holds one.
    drop(command);
    let (mut text, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = person.read(&mut buffer) {
        text.extend_from_slice(&buffer[..count]);
    }
    (String::from_utf8(text).unwrap(), status)
}

#[test]
fn a_name_is_asked_for() {
    let cli = Cli::new();
    let (mut person, program) = terminal();
    let mut command = cli.command(&cli.path("work"), &["create", "--json"]);
    command.stdin(program.try_clone().unwrap()).stdout(Stdio::piped()).stderr(program);
    let child = command.spawn().unwrap();
    person.write_all(b"typed by hand\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("\"name\":\"typed by hand\""), "{text}");
}

#[test]
fn a_list_has_colours_and_fits() {
    let cli = Cli::new();
    cli.run(&["create", "A name that is far too long for the line", "--id", "long", "--priority", "high"])
        .ok();
    cli.run(&["create", "Short", "--id", "short"]).ok();
    cli.run(&["fail", "short"]).ok();
    let cli = cli.with("TERM", "xterm");
    insta::assert_snapshot!(on_terminal(&cli, "40", &["list"]).replace('\u{1b}', "␛"), @r"
    ␛[1mlong␛[0m   todo    ␛[33mhigh␛[0m  A name that is far…
    ␛[1mshort␛[0m  ␛[31mfailed␛[0m        Short
    ");
    let cli = cli.with("NO_COLOR", "1");
    insta::assert_snapshot!(on_terminal(&cli, "40", &["list"]), @r"
    long   todo    high  A name that is far…
    short  failed        Short
    ");
    insta::assert_snapshot!(on_terminal(&cli, "200", &["list", "--limit", "1", "--fields", "id"]), @r#"
    {
      "schemaVersion": 1,
      "data": [
        {
          "id": "long"
        }
      ],
      "page": {
        "limit": 1,
        "offset": 0,
        "count": 1,
        "total": 2,
        "truncated": true
      }
    }
    "#);
}

#[test]
fn errors_have_colours_unless_nobody_wants_them() {
    let cli = Cli::new().with("TERM", "xterm");
    let error = |cli: &Cli, args: &[&str]| {
        let (person, program) = terminal();
        let mut command = cli.command(&cli.path("work"), args);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(program);
        let (text, status) = to_its_end(command, person);
        assert_eq!(status.code(), Some(6), "{text:?}");
        text
    };
    let coloured = error(&cli, &["show", "x"]);
    assert!(coloured.contains("\u{1b}[1m\u{1b}[31merror:\u{1b}[0m no task"), "{coloured:?}");
    let plain = error(&cli, &["show", "x", "--color", "never"]);
    assert!(plain.contains("error: no task") && !plain.contains('\u{1b}'), "{plain:?}");
    assert_eq!(error(&cli.with("NO_COLOR", "1"), &["show", "x"]), plain);
}

#[test]
fn a_run_has_a_bar_that_is_gone_at_the_end() {
    let cli = Cli::new().with_programs().with("TERM", "xterm").with("NO_COLOR", "1");
    cli.file(
        "plan.yaml",
        "tasks: [{id: a, run: 'until test -e go; do sleep 0.02; done'}, {id: b, needs: a, run: 'true'}]",
    );
    let (mut person, program) = terminal();
    tcsetwinsize(&program, Winsize { ws_row: 10, ws_col: 40, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let mut command = cli.command(&cli.path("work"), &["run-all-ready", "--plan", "plan.yaml"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(program);
    let mut child = command.spawn().unwrap();
    drop(command);
    let (mut text, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = person.read(&mut buffer) {
        text.extend_from_slice(&buffer[..count]);
        if String::from_utf8_lossy(&text).contains("─  0/2  1 running") {
            cli.file("go", "");
        }
    }
    assert!(child.wait().unwrap().success());
    let text = String::from_utf8(text).unwrap();
    let (_, end) = text.rsplit_once("running").unwrap();
    let end = end.replace("\u{1b}[?2026h", "").replace("\u{1b}[?2026l", "");
    assert!(end.ends_with("\u{1b}[J"), "the bar is erased: {end:?}");
    assert!(text.contains("✓ a  ") && text.contains("✓ b  "), "{text:?}");
    assert!(!text.contains("\u{1b}[?25l"), "the cursor is never hidden");
}
