//! Paths that the sandbox excludes for programs are excluded for file tools, too, however they are spelled.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use taskpawl_tools::{ClosedPlaces, Confinement, SandboxMode, SandboxPlaces, SandboxSettings};

use crate::support::Project;

/// Hidden files: neither read nor written.
const HIDDEN: [&str; 6] =
    [".env", ".envrc", "app/.env.local", "a/b/c/d/e/f/g/h/.env", "diary/today", "state/tasks.db"];

/// Protected files: read, but not written.
const PROTECTED: [&str; 6] = [
    ".git/hooks/pre-commit",
    ".git/config",
    ".mcp.json",
    "taskpawl.toml",
    ".vscode/settings.json",
    "infra/main.tf",
];

/// Files that are excluded because of their directory.
const IN_DIRECTORIES: [&str; 5] =
    ["diary/today", "state/tasks.db", ".git/hooks/pre-commit", ".vscode/settings.json", "infra/main.tf"];

/// Protected paths that do not exist.
const MISSING: [&str; 16] = [
    ".bashrc",
    ".claude/settings.json",
    ".claude/commands/deep/new.md",
    ".git/hooks/post-merge",
    ".git/commondir",
    ".git/modules/m/config",
    "lib/.git/config",
    "lib/.git/hooks/new",
    "taskpawl-policy.toml",
    ".idea/workspace.xml",
    ".gemini/settings.json",
    ".env.production",
    "app/.env",
    "app/.mcp.json",
    "app/.vscode/settings.json",
    "app/lib/.claude/commands/new.md",
];

fn project(settings: SandboxSettings) -> Project {
    let mut project = Project::new();
    for name in HIDDEN.iter().chain(&PROTECTED).chain(&["app/main.rs"]) {
        project.write(name, "a secret");
    }
    project.cx.closed = closed(&project, settings);
    project
}

/// Returns the paths that are excluded in a project by default.
pub(crate) fn closed_at(project: &Project) -> ClosedPlaces {
    closed(project, SandboxSettings::default())
}

fn closed(project: &Project, mut settings: SandboxSettings) -> ClosedPlaces {
    settings.hide = vec!["diary".into()];
    settings.protect = vec!["infra".into()];
    let places = SandboxPlaces {
        root: project.cx.root.clone(),
        own: vec![project.path("state")],
        variables: [("HOME".into(), project.beside("home").into())].into(),
        ..SandboxPlaces::default()
    };
    Confinement::new(settings, places).plain().closed
}

/// Returns other spellings of the path of a file, and creates the links that they need.
fn spellings(project: &Project, path: &str) -> Vec<String> {
    let ways = project.path("ways");
    let _ = fs::remove_dir_all(&ways);
    fs::create_dir(&ways).unwrap();
    let (parent, name) = path.rsplit_once('/').unwrap_or((".", path));
    symlink(project.path(path), ways.join("absolute-link")).unwrap();
    symlink(format!("../{path}"), ways.join("link")).unwrap();
    symlink("link", ways.join("link-to-link")).unwrap();
    symlink(format!("../{parent}"), ways.join("directory")).unwrap();
    let directory = format!("ways/directory/{name}");
    let absolute = project.path(path).to_str().unwrap().to_owned();
    let written = [path.to_owned(), format!("./ways/../{path}"), format!(".//{path}"), absolute, directory];
    let links = ["link", "link-to-link"].map(|name| format!("ways/{name}"));
    // Only files that are excluded themselves are recognised by a hard link; files within an excluded directory are
    // not.
    let is_closed_itself = !IN_DIRECTORIES.contains(&path);
    let hard_link = is_closed_itself.then(|| {
        fs::hard_link(project.path(path), ways.join("hard-link")).unwrap();
        "ways/hard-link".to_owned()
    });
    written.into_iter().chain(links).chain(hard_link).collect()
}

/// Calls that read a file; the second one also writes it.
fn reading(path: &str) -> [(&'static str, Value); 3] {
    [
        ("read_file", json!({"path": path})),
        ("edit_file", json!({"path": path, "old": "secret", "new": "lie"})),
        ("grep", json!({"path": path, "pattern": "secret"})),
    ]
}

/// Calls that write a file without reading it.
fn writing(path: &str) -> [(&'static str, Value); 2] {
    [
        ("write_file", json!({"path": path, "content": "lie"})),
        ("write_file", json!({"path": path, "content": "lie", "append": true})),
    ]
}

/// Returns whether a call was refused because of an excluded path. A search instead reports that it skipped the file.
async fn is_refused(project: &Project, tool: &str, args: &Value) -> bool {
    match project.call(tool, args.clone()).await {
        Err(error) => {
            assert_eq!(error.class(), "protected", "{tool} {args}: {error}");
            true
        }
        Ok(result) => {
            let leaves_out = tool == "grep" && result["hidden"] == 1;
            assert!(!leaves_out || result["matches"] == json!([]), "{args}: {result}");
            leaves_out
        }
    }
}

#[tokio::test]
async fn hidden_files_are_neither_read_nor_written_under_any_spelling() {
    let mut project = project(SandboxSettings::default());
    for path in HIDDEN {
        for spelling in spellings(&project, path) {
            // Replacing a hard link creates a new file under that name; the hidden file stays unchanged.
            let replaces_a_link = spelling.ends_with("hard-link");
            let skip = usize::from(replaces_a_link);
            for (tool, args) in
                reading(&spelling).into_iter().chain(writing(&spelling).into_iter().skip(skip))
            {
                assert!(is_refused(&project, tool, &args).await, "{path} by {tool} {args}");
            }
            assert_eq!(project.read(path), "a secret", "{path} by {spelling}");
        }
    }
    for path in ["diary", "state"] {
        assert!(is_refused(&project, "list_dir", &json!({"path": path})).await);
    }
    let names = project.call("list_dir", json!({"path": "."})).await.unwrap();
    assert!(names.to_string().contains(".env"), "hidden files are still listed: {names}");

    project.cx.closed = ClosedPlaces::default();
    for path in HIDDEN {
        for spelling in spellings(&project, path) {
            let (tool, args) = &reading(&spelling)[0];
            assert_eq!(project.call(tool, args.clone()).await.unwrap()["content"], "a secret", "the control");
        }
    }
}

#[tokio::test]
async fn protected_files_are_read_but_not_written_under_any_spelling() {
    let mut project = project(SandboxSettings::default());
    for path in PROTECTED {
        for spelling in spellings(&project, path) {
            let content = project.call("read_file", json!({"path": spelling})).await.unwrap();
            assert_eq!(content["content"], "a secret");
            let edit = reading(&spelling)[1].clone();
            // Replacing one hard link leaves the file behind the other ones unchanged.
            let replaces_a_link = spelling.ends_with("hard-link");
            let tried = writing(&spelling).into_iter().rev().chain([edit]);
            for (tool, args) in tried.take(if replaces_a_link { 1 } else { 3 }) {
                assert!(is_refused(&project, tool, &args).await, "{path} by {tool} {args}");
            }
            assert_eq!(project.read(path), "a secret", "{path} by {spelling}");
        }
    }
    project.cx.closed = ClosedPlaces::default();
    for path in PROTECTED {
        let (tool, args) = &writing(path)[0];
        project.call(tool, args.clone()).await.expect("the control");
        assert_eq!(project.read(path), "lie");
    }
}

#[tokio::test]
async fn missing_protected_files_are_not_created() {
    let mut project = project(SandboxSettings::default());
    for path in MISSING {
        let (_, name) = path.rsplit_once('/').unwrap_or(("", path));
        let link = project.path("link");
        symlink(path, &link).unwrap();
        for spelling in [path, &format!("./app/../{path}"), &path.replace(name, &name.to_uppercase())] {
            for (tool, args) in writing(spelling) {
                assert!(is_refused(&project, tool, &args).await, "{path} by {tool} {args}");
            }
        }
        let append = json!({"path": "link", "content": "lie", "append": true});
        project.call("write_file", append).await.unwrap_err();
        assert!(!project.path(path).exists(), "{path}");
        fs::remove_file(link).unwrap();
    }
    for directory in [".idea", ".claude/commands", ".git/HOOKS", "app/.ENV"] {
        assert!(!project.path(directory).exists(), "{directory}: directories are not created either");
    }
    fs::remove_dir_all(project.path(".git")).unwrap();
    for (tool, args) in writing(".git") {
        assert!(is_refused(&project, tool, &args).await, "a file `.git` can redirect the hooks: {args}");
    }
    project.cx.closed = ClosedPlaces::default();
    for path in MISSING {
        let (tool, args) = &writing(path)[0];
        project.call(tool, args.clone()).await.expect("the control");
        assert_eq!(project.read(path), "lie");
    }
}

#[tokio::test]
async fn searches_skip_hidden_files_and_report_that() {
    let project = project(SandboxSettings::default());
    let found = project.call("grep", json!({"pattern": "secret"})).await.unwrap();
    let paths: Vec<_> =
        found["matches"].as_array().unwrap().iter().map(|found| found["path"].as_str().unwrap()).collect();
    assert_eq!(
        paths,
        [".mcp.json", ".vscode/settings.json", "app/main.rs", "infra/main.tf", "taskpawl.toml"]
    );
    assert_eq!(found["hidden"], 6);
    let found = project.call("glob", json!({"pattern": "app/**"})).await.unwrap();
    assert_eq!(found, json!({"paths": ["app/main.rs"], "hidden": 3}));
}

#[tokio::test]
async fn a_named_path_is_allowed_and_its_parents_are_not() {
    let mut settings = SandboxSettings {
        read: vec![".env".into(), "app".into(), "diary".into(), "state".into()],
        write: vec![".git/hooks".into(), ".mcp.json".into()],
        ..SandboxSettings::default()
    };
    for mode in [SandboxMode::On, SandboxMode::Off] {
        settings.mode = mode;
        let project = project(settings.clone());
        let mut said = Vec::new();
        for path in HIDDEN {
            said.push(match project.call("read_file", json!({"path": path})).await {
                Ok(_) => format!("{path}: open"),
                Err(error) => project.stable(&error.to_string()),
            });
        }
        for path in PROTECTED.iter().chain(&[".git/hooks/new", ".bashrc"]) {
            said.push(match project.call("write_file", json!({"path": path, "content": "x"})).await {
                Ok(_) => format!("{path}: open"),
                Err(error) => project.stable(&error.to_string()),
            });
        }
        insta::allow_duplicates! {
            insta::assert_snapshot!(said.join("\n"), @r"
            .env: open
            `.envrc` is hidden, because it may contain secrets; `--allow-read [dir]/project/.envrc` makes it readable
            `app/.env.local` is hidden, because it may contain secrets; `--allow-read [dir]/project/app/.env.local` makes it readable
            `a/b/c/d/e/f/g/h/.env` is hidden, because it may contain secrets; `--allow-read [dir]/project/a/b/c/d/e/f/g/h/.env` makes it readable
            `diary/today` is closed to tools: `hide` in `[sandbox]` of the configuration contains `[dir]/project/diary`
            `state/tasks.db` belongs to taskpawl, and tools may not use it
            .git/hooks/pre-commit: open
            `.git/config` is protected, because other programs run or load it; `--allow-write [dir]/project/.git/config` makes it writable
            .mcp.json: open
            `taskpawl.toml` is protected, because other programs run or load it; `--allow-write [dir]/project/taskpawl.toml` makes it writable
            `.vscode/settings.json` is protected, because other programs run or load it; `--allow-write [dir]/project/.vscode` makes it writable
            `infra/main.tf` is closed to tools: `protect` in `[sandbox]` of the configuration contains `[dir]/project/infra`
            .git/hooks/new: open
            `.bashrc` is protected, because other programs run or load it; create it first, then `--allow-write [dir]/project/.bashrc` makes it writable
            ");
        }
    }
}
