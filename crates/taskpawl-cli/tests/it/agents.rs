//! `init --agent`: shows its changes first, writes them after a confirmation, and can undo them.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use crate::harness::Cli;
use crate::terminal::terminal;

#[test]
fn it_shows_what_it_would_write_and_writes_it_when_told() {
    let cli = Cli::without_store();
    cli.file("CLAUDE.md", "# Mine\n");
    let shown = cli.run(&["init", "--agent", "claude", "--hooks"]);
    insta::assert_snapshot!(shown);
    assert!(
        !cli.path("work/.mcp.json").exists() && !cli.path("work/.taskpawl").exists(),
        "nothing is written"
    );

    cli.run(&["init", "--agent", "claude", "--hooks", "--yes"]).ok();
    insta::assert_snapshot!(fs::read_to_string(cli.path("work/.mcp.json")).unwrap(), @r#"
    {
      "mcpServers": {
        "taskpawl": {
          "command": "taskpawl",
          "args": ["mcp"]
        }
      }
    }
    "#);
    insta::assert_snapshot!(fs::read_to_string(cli.path("work/.claude/settings.json")).unwrap(), @r#"
    {
      "hooks": {
        "SessionStart": [
          {
            "hooks": [
              {
                "type": "command",
                "command": "taskpawl prime"
              }
            ]
          }
        ]
      }
    }
    "#);
    let tools = cli.run(&["tools", "list", "--json"]).ok();
    assert!(!tools.stderr.contains("trust"), "our own server is no server of a plan: {tools}");
    let again = cli.run(&["init", "--agent", "claude", "--hooks"]).ok();
    assert!(again.stdout.is_empty() && again.stderr.contains("nothing was changed"), "{again}");
    assert!(cli.path("work/.taskpawl").exists(), "the project is made, too");

    cli.run(&["init", "--agent", "claude", "--remove", "--yes"]).ok();
    assert_eq!(fs::read_to_string(cli.path("work/CLAUDE.md")).unwrap(), "# Mine\n");
    assert!(!cli.path("work/.mcp.json").exists() && !cli.path("work/.claude").exists());
    let nothing = cli.run(&["init", "--agent", "claude", "--remove"]).ok();
    assert!(nothing.stderr.contains("nothing to take back"), "{nothing}");
}

#[test]
fn all_agents_at_once() {
    let cli = Cli::without_store();
    let all = "claude,gemini,codex,cursor,vscode,zed,opencode";
    let run = cli.run(&["init", "--agent", all, "--allow", "sandboxed", "--yes", "--json"]).ok();
    insta::assert_snapshot!(run);
    let names = [
        ".codex/config.toml",
        ".cursor/mcp.json",
        ".cursor/rules/taskpawl.mdc",
        ".gemini/settings.json",
        ".vscode/mcp.json",
        ".zed/settings.json",
        "opencode.json",
    ];
    let texts = names.map(|name| {
        let text = fs::read_to_string(cli.path("work").join(name)).unwrap();
        format!("== {name}\n{text}")
    });
    insta::assert_snapshot!(texts.concat());
}

#[test]
fn broken_files_are_refused_before_anything_is_written() {
    let cli = Cli::without_store();
    cli.file(".mcp.json", "{\n  \"mcpServers\": oops\n}\n");
    let run = cli.run(&["init", "--agent", "claude", "--yes"]);
    insta::assert_snapshot!(run, @"
    $ taskpawl init --agent claude --yes
    ! error: failed to change `.mcp.json`: line 2, column 17: Unexpected word
    ! hint: nothing was changed; put the file in order, or move it away, and try again
    [exit 2]
    ");
    assert!(!cli.path("work/CLAUDE.md").exists());
}

#[test]
fn a_person_is_asked() {
    // First whether calls may run in the sandbox without a question each, then whether to write.
    for (answers, is_written, is_allowed) in
        [(&b"n\nn\n"[..], false, false), (b"n\ny\n", true, false), (b"y\ny\n", true, true)]
    {
        let cli = Cli::without_store();
        let (mut person, program) = terminal();
        let mut command = cli.command(&cli.path("work"), &["init", "--agent", "gemini"]);
        command.stdin(program.try_clone().unwrap()).stdout(Stdio::piped()).stderr(program);
        let child = command.spawn().unwrap();
        person.write_all(answers).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.success(), is_written, "{output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("GEMINI.md (new)"), "{output:?}");
        assert_eq!(cli.path("work/GEMINI.md").exists(), is_written);
        let settings = std::fs::read_to_string(cli.path("work/.gemini/settings.json")).unwrap_or_default();
        assert_eq!(
            (!settings.is_empty(), settings.contains("sandboxed")),
            (is_written, is_allowed),
            "{settings}"
        );
    }
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let cli = Cli::without_store();
    for args in [
        &["init", "--hooks"][..],
        &["init", "--yes"],
        &["init", "--remove"],
        &["init", "--agent", "codex", "--hooks", "--yes"],
        &["init", "--agent", "nobody"],
        &["init", "--agent", "claude", "--remove", "--allow", "sandboxed"],
        &["init", "--agent", "claude", "--remove", "--hooks"],
    ] {
        assert_eq!(cli.run(args).code, Some(2), "{args:?}");
    }
    assert!(!cli.path("work/.taskpawl").exists());
}

/// Opening a pipe would block until another process writes to it.
#[test]
fn what_is_no_file_is_refused() {
    for name in ["CLAUDE.md", ".mcp.json", "opencode.json"] {
        let cli = Cli::without_store();
        rustix::fs::mkfifoat(rustix::fs::CWD, cli.path("work").join(name), rustix::fs::Mode::RWXU).unwrap();
        let agent = if name == "opencode.json" { "opencode" } else { "claude" };
        let refused = cli.run(&["init", "--agent", agent]);
        assert!(refused.stderr.contains(name) && refused.stderr.contains(", not a file"), "{refused}");
    }
}

#[test]
fn marks_that_do_not_fit_are_named_before_anything_is_written() {
    let cli = Cli::without_store();
    let text = "# Mine\n\n<!-- taskpawl:begin -->\nkept\n";
    cli.file("CLAUDE.md", text);
    insta::assert_snapshot!(cli.session(&[
        &["init", "--agent", "claude", "--yes"],
        &["init", "--agent", "claude", "--remove", "--yes"],
    ]), @"
    $ taskpawl init --agent claude --yes
    ! error: failed to change `CLAUDE.md`: line 3: `<!-- taskpawl:begin -->` has no line `<!-- taskpawl:end -->` after it
    ! hint: nothing was changed; delete line 3, or put a line `<!-- taskpawl:end -->` after the lines of taskpawl, and try again
    [exit 2]

    $ taskpawl init --agent claude --remove --yes
    ! error: failed to change `CLAUDE.md`: line 3: `<!-- taskpawl:begin -->` has no line `<!-- taskpawl:end -->` after it
    ! hint: nothing was changed; delete line 3, or put a line `<!-- taskpawl:end -->` after the lines of taskpawl, and try again
    [exit 2]
    ");
    assert_eq!(fs::read_to_string(cli.path("work/CLAUDE.md")).unwrap(), text);
    assert!(!cli.path("work/.mcp.json").exists() && !cli.path("work/.taskpawl").exists());
    cli.file("CLAUDE.md", &text.replace("begin", "end"));
    insta::assert_snapshot!(cli.run(&["init", "--agent", "claude", "--yes"]), @"
    $ taskpawl init --agent claude --yes
    ! error: failed to change `CLAUDE.md`: line 3: `<!-- taskpawl:end -->` has no line `<!-- taskpawl:begin -->` before it
    ! hint: nothing was changed; delete line 3, or put a line `<!-- taskpawl:begin -->` before the lines of taskpawl, and try again
    [exit 2]
    ");
}
