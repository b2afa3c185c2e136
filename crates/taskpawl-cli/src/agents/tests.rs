//! Each addition can be removed byte for byte, from any file.

use std::fs;
use std::path::Path;

use clap::ValueEnum as _;
use taskpawl::tools::SandboxPlaces;
use taskpawl_formats::json_text::Json;

use super::block::Block;
use super::json::{Addition, What};
use super::{Agent, Change, Changes, Wish};

fn entry(path: &[&'static str], args: &[&str]) -> Addition {
    let args = args.iter().map(|word| Json::Plain((*word).into())).collect();
    let fields = vec![("command", Json::Plain("taskpawl".into())), ("args", Json::List(args))];
    Addition { path: path.to_vec(), what: What::Entry("taskpawl", fields) }
}

fn hook() -> Addition {
    let element = Json::object([("command", Json::Plain("taskpawl prime".into()))]);
    Addition { path: vec!["hooks", "SessionStart"], what: What::Element(element, "taskpawl prime") }
}

/// Files as people and programs write them.
const FILES: &[&str] = &[
    "",
    "\n",
    "{}",
    "{}\n",
    "{ }",
    "{\n}\n",
    "{\n  // nothing yet\n}\n",
    "{ /* nothing */ }",
    "// all about servers\n{}\n",
    "{\"mcpServers\":{}}",
    "{\"mcpServers\": { }, \"x\": 1}",
    "{\"a\":1}",
    "{\"a\":1,}",
    "{\n  \"a\": 1\n}\n",
    "{\n  \"a\": 1,\n}\n",
    "{\n\t\"a\": 1 // one\n\t// \"b\": 2\n}\n",
    "{\n\t\"a\": 1, // one\n\t/* \"b\": 2 */\n}\n",
    "{\r\n    \"a\": [1,\r\n 2]\r\n}\r\n",
    "{\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"}\n  },\n  \"z\": null\n}",
    "{\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"}, // keep\n  }\n}",
    "{\n  \"mcpServers\": {},\n  \"hooks\": {\"SessionStart\": []}\n}\n",
    "{\n  \"mcpServers\": {\n  }\n}\n",
    "{\n  \"hooks\": {\n    \"SessionStart\": [\n      {\"command\": \"mine\"}\n    ],\n    \"Stop\": []\n  }\n}\n",
    "{ // servers\n  \"mcpServers\": { // of mine\n    \"o\": {} }\n}\n",
    "\u{feff}{\"a\": \"ü\"}\n",
];

#[test]
fn json_is_as_before_when_the_addition_is_taken_back() {
    for addition in [entry(&["mcpServers"], &["mcp"]), entry(&["mcp", "servers"], &[]), hook()] {
        for file in FILES {
            let added = addition.add(Some(file)).unwrap_or_else(|error| panic!("{file:?}: {error}"));
            assert!(addition.is_in(&added), "{file:?} became\n{added}");
            assert_eq!(addition.add(Some(&added)).unwrap(), added, "twice is once: {file:?}");
            let removed = addition.remove(&added).unwrap();
            assert_eq!(removed.as_deref(), Some(*file), "by way of\n{added}");
        }
        let made = addition.add(None).unwrap();
        assert_eq!(addition.remove(&made).unwrap(), None, "{made}");
        assert_eq!(addition.add(Some(&made)).unwrap(), made);
    }
}

#[test]
fn an_entry_looks_as_if_it_had_been_written_by_hand() {
    let file = "{\n    // the servers\n    \"mcpServers\": {\n        \"other\": { \"command\": \"x\" } // mine\n    }\n}\n";
    insta::assert_snapshot!(entry(&["mcpServers"], &["mcp", "--allow", "sandboxed"]).add(Some(file)).unwrap(), @r#"
    {
        // the servers
        "mcpServers": {
            "other": { "command": "x" }, // mine
            "taskpawl": {
                "command": "taskpawl",
                "args": ["mcp", "--allow", "sandboxed"]
            }
        }
    }
    "#);
    insta::assert_snapshot!(hook().add(None).unwrap(), @r#"
    {
      "hooks": {
        "SessionStart": [
          {
            "command": "taskpawl prime"
          }
        ]
      }
    }
    "#);
}

#[test]
fn an_entry_of_somebody_else_is_left_alone() {
    let ours = entry(&["mcpServers"], &["mcp"]);
    let file = |fields: &str| format!("{{\"mcpServers\": {{\n  \"taskpawl\": {{{fields}}}}}}}");
    for fields in [
        r#""command": "old", "env": {"A": "1"}, "args": ["x"]"#,
        r#""command": "taskpawl", "args": ["mcp", "--read-only"]"#,
        r#""command": "taskpawl""#,
    ] {
        let text = file(fields);
        let error = ours.add(Some(&text)).unwrap_err().to_string();
        assert!(error.starts_with("line 2, column 3: it has an entry `taskpawl`"), "{error}");
        assert!(ours.is_others(&text));
        assert_eq!(ours.remove(&text).unwrap().as_deref(), Some(text.as_str()));
    }
    // An entry with the same command is enough, and keeps its other fields.
    let text = file(r#""command": "taskpawl", /* mine */ "env": {"A": "1"}, "args": ["mcp"]"#);
    assert_eq!(ours.add(Some(&text)).unwrap(), text);
    assert_eq!(ours.remove(&text).unwrap().as_deref(), Some(text.as_str()));
    // An entry from an earlier set-up with other options is recognized as ours.
    let wished = entry(&["mcpServers"], &["mcp", "--allow", "sandboxed"]);
    let text = wished.add(Some("{}")).unwrap();
    assert!(!ours.is_others(&text));
    assert_eq!(ours.add(Some(&text)).unwrap(), text.replace(r#""mcp", "--allow", "sandboxed""#, r#""mcp""#));
    assert_eq!(ours.remove(&text).unwrap().as_deref(), Some("{}"));
}

#[test]
fn an_entry_of_somebody_else_outlives_the_agent() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let text = r#"{"mcpServers":{"taskpawl":{"command":"old","env":{"A":"1"},"args":["x"]}}}"#;
    put(root, ".gemini/settings.json", text);
    assert!(Changes::adding(root, &[Agent::Gemini], Wish::default()).is_err());
    let changes = Changes::removing(root, &[Agent::Gemini]).unwrap();
    assert_eq!(
        changes.kept,
        ["`.gemini/settings.json` stays as it is: its entry is not as `init` writes it"]
    );
    changes.write(root).unwrap();
    assert_eq!(files(root), [(".gemini/settings.json".to_owned(), text.to_owned())]);
}

#[test]
fn a_text_that_speaks_of_the_marks_has_no_block() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let (rules, claude) = ("Be brief.\n", "It stands between `<!-- taskpawl:begin -->` and its end.\n");
    let broken = "<!-- taskpawl:begin -->\nand no end\n";
    for (name, text) in [(".rules", rules), ("CLAUDE.md", claude), ("GEMINI.md", broken)] {
        put(root, name, text);
    }
    for agent in [Agent::Zed, Agent::Claude] {
        Changes::adding(root, &[agent], Wish::default()).unwrap().write(root).unwrap();
        Changes::removing(root, &[agent]).unwrap().write(root).unwrap();
    }
    let there = [(".rules", rules), ("CLAUDE.md", claude), ("GEMINI.md", broken)];
    assert_eq!(files(root), there.map(|(name, text)| (name.to_owned(), text.to_owned())));
    assert!(Changes::removing(root, &[Agent::Gemini]).is_err(), "a file of its own is looked at");
}

#[test]
fn broken_files_are_refused() {
    let entry = entry(&["mcpServers"], &["mcp"]);
    for file in [
        "{",
        "[]",
        "{\"mcpServers\": []}",
        "{\"mcpServers\": {\"taskpawl\": 1}}",
        "{'a': 1}",
        "{\"a\" 1}",
        "{} {}",
        "null",
    ] {
        assert!(entry.add(Some(file)).is_err(), "{file}");
    }
    let error = entry.add(Some("{\n  \"a\": oops\n}")).unwrap_err().to_string();
    assert!(error.starts_with("line 2, column 8: "), "{error}");
}

fn block() -> Block {
    let text = "one\ntwo\n".to_owned();
    Block { begin: "<begin>", end: "<end>", text, head: "", is_markdown: true }
}

#[test]
fn text_is_as_before_when_the_block_is_taken_back() {
    let block = block();
    for file in ["", "\n", "a", "a\n", "a\n\n", "# Head\r\n\r\ntext\r\n", "text\r\nno end", "ü"] {
        let added = block.add(Some(file)).unwrap();
        assert_eq!(block.add(Some(&added)).unwrap(), added);
        assert!(added.ends_with('\n'), "what is added later stands on a line of its own: {added:?}");
        assert_eq!(block.remove(&added).unwrap().as_deref(), Some(file), "{added:?}");
    }
    let later = block.add(Some("a")).unwrap() + "later\n";
    assert_eq!(block.remove(&later).unwrap().as_deref(), Some("a\nlater\n"));
    let old = "a\n\n<begin>\none\ntwo\n<end>";
    assert_eq!(block.remove(old).unwrap().as_deref(), Some("a"), "as earlier versions wrote it");
    assert_eq!(block.add(Some(old)).unwrap(), block.add(Some("a")).unwrap());
    let made = block.add(None).unwrap();
    assert_eq!(made, "<begin>\none\ntwo\n<end>\n");
    assert_eq!(block.remove(&made).unwrap(), None);
    let newer = Block { text: "three".to_owned(), ..block.clone() };
    assert_eq!(newer.add(Some("a\n\n<begin>\nold\n<end>\nb\n")).unwrap(), "a\n\n<begin>\nthree\n<end>\nb\n");
    assert!(block.add(Some("<begin>\nno end")).is_err());
    assert!(block.add(Some("<end><begin>")).is_err());
}

#[test]
fn marks_in_blocks_of_code_are_text_of_their_author() {
    let block = block();
    for (begin, end) in [("```", "```"), ("````md", "`````  "), ("  ~~~ text", " ~~~~"), ("~~~", "   ~~~")] {
        for marks in ["<begin>\nmine\n<end>", "<begin>", "<end>", "<end>\n<begin>\n<begin>"] {
            let file = format!("# How it looks\r\n{begin}\n{marks}\n{end}\nmore\n");
            assert!(!block.is_in(&file), "{file}");
            let added = block.add(Some(&file)).unwrap();
            assert!(added.starts_with(&file) && block.is_in(&added), "{added}");
            assert_eq!(block.add(Some(&added)).unwrap(), added);
            assert_eq!(block.remove(&added).unwrap().as_deref(), Some(file.as_str()));
            assert_eq!(block.remove(&file).unwrap().as_deref(), Some(file.as_str()));
        }
    }
    // A fence that is never closed hides no block.
    let open = block.add(Some("```\nnever ended\n")).unwrap();
    assert_eq!(block.add(Some(&open)).unwrap(), open);
    assert_eq!(block.remove(&open).unwrap().as_deref(), Some("```\nnever ended\n"));
    // TOML has no fences.
    let toml = Block { is_markdown: false, ..block };
    assert!(toml.is_in("```\n<begin>\nold\n<end>\n```\n"));
}

#[test]
fn marks_that_do_not_fit_are_named_with_their_lines() {
    let faults = [
        ("a\n<begin>\nb\n", "line 2: `<begin>` has no line `<end>` after it"),
        ("<begin>\na\n<begin>\n<end>\n", "line 1: `<begin>` has no line `<end>` after it"),
        ("```\n<begin>\n```\n\n<end> tail", "line 5: `<end>` has no line `<begin>` before it"),
        ("<begin>\n<end>\n<end>\n", "line 3: `<end>` has no line `<begin>` before it"),
        ("<begin>\n<end>\n\n<begin>\n<end>\n", "line 4: `<begin>` stands there again, after line 1"),
    ];
    for (file, fault) in faults {
        let said = [block().add(Some(file)).unwrap_err(), block().remove(file).unwrap_err()];
        assert_eq!(said.map(|trouble| trouble.to_string()), [fault, fault], "{file}");
    }
}

#[test]
fn an_entry_is_known_by_its_name_alone() {
    let ours = entry(&["mcpServers"], &["mcp"]);
    let fields = r#"{"command": "taskpawl", "args": ["mcp"]}"#;
    // The same command under another name belongs to the user.
    let file = format!("{{\"mcpServers\": {{\"plans\": {fields}}}}}\n");
    assert_eq!(ours.remove(&file).unwrap().as_deref(), Some(file.as_str()));
    let added = ours.add(Some(&file)).unwrap();
    assert!(added.contains(&format!("\"plans\": {fields}, \"taskpawl\"")), "{added}");
    assert_eq!(ours.remove(&added).unwrap().as_deref(), Some(file.as_str()));
    // An entry of our name and form is ours, even if a person wrote it.
    let file = format!("{{\"mcpServers\": {{\"plans\": {fields}, \"taskpawl\": {fields}}}}}\n");
    assert_eq!(ours.add(Some(&file)).unwrap(), file);
    let left = format!("{{\"mcpServers\": {{\"plans\": {fields}}}}}\n");
    assert_eq!(ours.remove(&file).unwrap(), Some(left));
}

#[test]
fn a_hook_of_somebody_else_stays() {
    let theirs = r#"{"hooks": {"SessionStart": [{"command": "mine; taskpawl prime --json"}]}}"#;
    assert_eq!(hook().add(Some(theirs)).unwrap(), theirs, "it tells the state as well");
    assert!(hook().is_others(theirs));
    assert_eq!(hook().remove(theirs).unwrap().as_deref(), Some(theirs));
    let both = theirs.replace("}]", "}, {\"command\": \"taskpawl prime\"}]");
    assert!(!hook().is_others(&both));
    assert_eq!(hook().remove(&both).unwrap().as_deref(), Some(theirs));
}

#[test]
fn marks_in_a_text_of_a_table_are_part_of_it() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let text = "note = \"\"\"\n# taskpawl:begin\nmine\n# taskpawl:end\n\"\"\"\n";
    let within = "# taskpawl:begin\n[mcp_servers.taskpawl]\ncommand = \"taskpawl\"\n[mcp_servers.other]\ncommand = \"y\"\n# taskpawl:end\n";
    let behind = "# taskpawl:begin\n[mcp_servers.taskpawl]\ncommand = \"taskpawl\"\nargs = [\"mcp\"]\n# taskpawl:end\nmodel = \"x\"\n";
    for (text, is_added) in [(text, false), (within, false), (behind, true)] {
        put(root, ".codex/config.toml", text);
        let added = Changes::adding(root, &[Agent::Codex], Wish::default());
        assert_eq!(added.is_ok(), is_added, "{text}");
        let error = Changes::removing(root, &[Agent::Codex]).unwrap_err();
        let error = std::error::Error::source(&error).unwrap().to_string();
        assert!(error.contains("would change other entries"), "{error}");
    }
}

/// Returns every file below a directory with its content.
fn files(root: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().display().to_string();
                found.push((name, fs::read_to_string(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn put(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

const ALL: [Agent; 7] =
    [Agent::Claude, Agent::Gemini, Agent::Codex, Agent::Cursor, Agent::Vscode, Agent::Zed, Agent::Opencode];

#[test]
fn a_project_is_as_before_when_all_agents_are_taken_back() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    put(root, "CLAUDE.md", "# Mine\n");
    put(root, ".zed/settings.json", "{\n  // tabs\n  \"tab_size\": 2,\n}\n");
    put(root, ".codex/config.toml", "model = \"x\" # the best\n\n[mcp_servers.other]\ncommand = \"y\"");
    let before = files(root);
    let wish = Wish { allow_sandboxed: true, hooks: true };
    Changes::adding(root, &ALL, wish).unwrap().write(root).unwrap();
    let after = files(root);
    assert_eq!(after.len(), 13, "{:?}", after.iter().map(|(name, _)| name).collect::<Vec<_>>());
    let again = Changes::adding(root, &ALL, wish).unwrap();
    assert!(again.is_empty(), "{:?}", again.list().collect::<Vec<_>>());
    Changes::removing(root, &ALL).unwrap().write(root).unwrap();
    assert_eq!(files(root), before);
    assert!(!root.join(".cursor").exists(), "directories that were made are gone");
}

#[test]
fn instructions_that_several_read_stay_until_the_last_one_is_gone() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    Changes::adding(root, &[Agent::Codex, Agent::Opencode], Wish::default()).unwrap().write(root).unwrap();
    let changes = Changes::removing(root, &[Agent::Codex]).unwrap();
    assert_eq!(changes.kept, ["`AGENTS.md` stays as it is: opencode reads it, too"]);
    changes.write(root).unwrap();
    assert!(root.join("AGENTS.md").exists() && !root.join(".codex").exists());
    Changes::removing(root, &[Agent::Opencode]).unwrap().write(root).unwrap();
    assert_eq!(files(root), []);
}

#[test]
fn what_a_link_leads_to_is_written_once_and_the_link_stays() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    put(root, "AGENTS.md", "# All\n");
    std::os::unix::fs::symlink("AGENTS.md", root.join("CLAUDE.md")).unwrap();
    let changes = Changes::adding(root, &[Agent::Claude, Agent::Codex], Wish::default()).unwrap();
    changes.write(root).unwrap();
    assert!(root.join("CLAUDE.md").is_symlink());
    assert_eq!(fs::read_to_string(root.join("AGENTS.md")).unwrap().matches("taskpawl:begin").count(), 1);
    let names: Vec<_> = changes.list().filter(|(_, change)| *change != Change::Unchanged).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    Changes::removing(root, &[Agent::Claude, Agent::Codex]).unwrap().write(root).unwrap();
    let shown = Changes::adding(root, &[Agent::Claude], Wish::default()).unwrap();
    let shown = shown.diff(crate::text::Paint { is_on: false });
    assert!(shown.as_str().contains("CLAUDE.md -> AGENTS.md\n"), "{shown:?}");
}

#[test]
fn a_link_that_leads_out_of_the_project_is_refused() {
    let above = tempfile::tempdir().unwrap();
    let root = above.path().join("project");
    fs::create_dir(&root).unwrap();
    put(above.path(), "outside/f", "# Theirs\n");
    for (name, target) in [
        ("CLAUDE.md", "../outside/f"),
        ("CLAUDE.md", "../outside/new"),
        (".mcp.json", "/etc/hostname"),
        (".claude", "../outside"),
    ] {
        std::os::unix::fs::symlink(target, root.join(name)).unwrap();
        let wish = Wish { hooks: true, ..Wish::default() };
        let error = Changes::adding(&root, &[Agent::Claude], wish).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("out of the project, to `/"), "{error}");
        Changes::removing(&root, &[Agent::Claude]).unwrap().write(&root).unwrap();
        fs::remove_file(root.join(name)).unwrap();
    }
    assert_eq!(files(above.path()), [("outside/f".to_owned(), "# Theirs\n".to_owned())]);
}

#[test]
fn a_link_to_what_is_not_there_yet_stays_one() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    std::os::unix::fs::symlink("docs/AGENTS.md", root.join("CLAUDE.md")).unwrap();
    Changes::adding(root, &[Agent::Claude], Wish::default()).unwrap().write(root).unwrap();
    assert!(root.join("CLAUDE.md").is_symlink() && root.join("docs/AGENTS.md").is_file());
}

#[test]
fn zed_is_told_in_the_file_that_it_reads() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    put(root, "CLAUDE.md", "# Mine\n");
    let path = |root: &Path| {
        let changes = Changes::adding(root, &[Agent::Zed], Wish::default()).unwrap();
        changes.list().map(|(name, _)| name.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(path(root), [".zed/settings.json", "CLAUDE.md"]);
    Changes::adding(root, &[Agent::Zed], Wish::default()).unwrap().write(root).unwrap();
    put(root, ".rules", "");
    assert_eq!(path(root), [".rules", ".zed/settings.json"]);
    Changes::removing(root, &[Agent::Zed]).unwrap().write(root).unwrap();
    let left = [(".rules".to_owned(), String::new()), ("CLAUDE.md".to_owned(), "# Mine\n".to_owned())];
    assert_eq!(files(root), left, "it is taken out of where it was put");
}

#[test]
fn a_table_of_somebody_else_is_left_alone() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    for text in ["[mcp_servers.taskpawl]\ncommand = \"mine\"\n", "mcp_servers = {}\n", "not toml"] {
        put(root, ".codex/config.toml", text);
        let error = Changes::adding(root, &[Agent::Codex], Wish::default()).unwrap_err();
        let error = std::error::Error::source(&error).unwrap().to_string();
        assert!(error.contains("line "), "{text}: {error}");
        assert_eq!(error.contains("line 1, column 1: it has an entry"), text.starts_with('['), "{error}");
        assert_eq!(fs::read_to_string(root.join(".codex/config.toml")).unwrap(), text);
    }
}

#[test]
fn a_table_of_somebody_else_that_says_the_same_is_enough() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let text =
        "[mcp_servers]\ntaskpawl = { args = ['mcp'], command = \"taskpawl\", env = { A = \"b\" } } # mine\n";
    put(root, ".codex/config.toml", text);
    Changes::adding(root, &[Agent::Codex], Wish::default()).unwrap().write(root).unwrap();
    let there = files(root);
    assert_eq!(there[0], (".codex/config.toml".to_owned(), text.to_owned()));
    assert_eq!((there.len(), there[1].0.as_str()), (2, "AGENTS.md"));
    Changes::removing(root, &[Agent::Codex]).unwrap().write(root).unwrap();
    assert_eq!(files(root), [(".codex/config.toml".to_owned(), text.to_owned())]);
    // The entry of the user lacks the option, so it does not replace ours.
    let wish = Wish { allow_sandboxed: true, ..Wish::default() };
    assert!(Changes::adding(root, &[Agent::Codex], wish).is_err());
}

#[test]
fn a_newer_version_of_opencode_keeps_servers_one_level_deeper() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    put(root, "opencode.json", "{\"mcp\": {\"servers\": {\"o\": {}}}}");
    Changes::adding(root, &[Agent::Opencode], Wish::default()).unwrap().write(root).unwrap();
    let text = fs::read_to_string(root.join("opencode.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["mcp"]["servers"]["taskpawl"]["command"], serde_json::json!(["taskpawl", "mcp"]));
}

#[test]
fn every_file_of_a_set_up_is_protected_from_programs_of_a_plan() {
    let root = tempfile::tempdir().unwrap();
    for agent in Agent::value_variants() {
        for piece in agent.all_pieces(root.path()) {
            let part = SandboxPlaces::part_obeyed(Path::new(&piece.path));
            assert!(part.is_some(), "`{}` of {} is missing in `obeyed.txt`", piece.path, agent.word());
        }
    }
    assert_eq!(SandboxPlaces::part_obeyed(Path::new("README.md")), None);
}
