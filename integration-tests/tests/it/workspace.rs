//! Rules of the workspace: dependencies point down only, licences are known, some crates are banned.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// The crates of the workspace that each crate may depend on. A new edge is a design change.
const ALLOWED: &[(&str, &[&str])] = &[
    ("taskpawl-fuzz", &[]),
    ("taskpawl-http", &[]),
    ("taskpawl-json", &[]),
    ("taskpawl-schedule", &[]),
    ("taskpawl-macros", &[]),
    ("taskpawl-text", &[]),
    ("taskpawl-agent", &["taskpawl-json", "taskpawl-text", "taskpawl-tools"]),
    ("taskpawl-formats", &["taskpawl-json", "taskpawl-model", "taskpawl-text"]),
    ("taskpawl-model", &["taskpawl-json", "taskpawl-text"]),
    ("taskpawl-planner", &["taskpawl-json", "taskpawl-model", "taskpawl-text", "taskpawl-tools"]),
    ("taskpawl-process", &[]),
    ("taskpawl-report", &["taskpawl-model", "taskpawl-text"]),
    ("taskpawl-store", &["taskpawl-json", "taskpawl-model"]),
    ("taskpawl-tools", &["taskpawl-json", "taskpawl-process", "taskpawl-text"]),
    ("taskpawl-manager", &["taskpawl-model", "taskpawl-store"]),
    (
        "taskpawl-engine",
        &["taskpawl-manager", "taskpawl-model", "taskpawl-store", "taskpawl-text", "taskpawl-tools"],
    ),
    (
        "taskpawl",
        &[
            "taskpawl-engine",
            "taskpawl-macros",
            "taskpawl-manager",
            "taskpawl-model",
            "taskpawl-planner",
            "taskpawl-store",
            "taskpawl-text",
            "taskpawl-tools",
        ],
    ),
    (
        "taskpawl-todo",
        &["taskpawl-json", "taskpawl-manager", "taskpawl-model", "taskpawl-text", "taskpawl-tools"],
    ),
    ("taskpawl-mcp", &["taskpawl", "taskpawl-http", "taskpawl-json", "taskpawl-planner", "taskpawl-text"]),
    ("taskpawl-restate", &["taskpawl"]),
    ("taskpawl-worker", &["taskpawl", "taskpawl-cli", "taskpawl-restate"]),
    ("taskpawl-web", &["taskpawl", "taskpawl-http", "taskpawl-json", "taskpawl-text"]),
    (
        "taskpawl-cli",
        &[
            "taskpawl",
            "taskpawl-agent",
            "taskpawl-formats",
            "taskpawl-http",
            "taskpawl-json",
            "taskpawl-mcp",
            "taskpawl-planner",
            "taskpawl-report",
            "taskpawl-restate",
            "taskpawl-schedule",
            "taskpawl-text",
            "taskpawl-todo",
            "taskpawl-web",
        ],
    ),
    ("taskpawl-bench", &["taskpawl"]),
    ("taskpawl-scheduling-study", &["taskpawl-model", "taskpawl-testkit"]),
    (
        "taskpawl-testkit",
        &["taskpawl-engine", "taskpawl-manager", "taskpawl-model", "taskpawl-store", "taskpawl-tools"],
    ),
    (
        "integration-tests",
        &[
            "taskpawl",
            "taskpawl-cli",
            "taskpawl-engine",
            "taskpawl-process",
            "taskpawl-store",
            "taskpawl-text",
        ],
    ),
];

/// Compatible licences; one alternative of an expression is enough.
const LICENCES: &[&str] = &[
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
    "CC0-1.0",
    "0BSD",
];

/// Banned crates, with the reason.
const BANNED: &[(&str, &str)] = &[
    ("openssl-sys", "one TLS, in Rust"),
    ("native-tls", "one TLS, in Rust"),
    ("serde_yaml", "no longer kept up"),
    ("yaml-rust", "no longer kept up"),
    ("lazy_static", "the standard library has it"),
    ("anyhow", "libraries have typed errors"),
    ("nix", "rustix is enough"),
    ("command-group", "runs code between fork and exec"),
    ("reqwest", "a runtime and a hundred crates for one tool"),
];

/// Crates that are banned except in tests, and in the places that are named, which no shipped crate depends on. Tools of embedders may
/// return errors of `anyhow`, so that a test does, and the macro of protobuf messages uses it while it compiles.
const EXCEPTED: &[(&str, &[&str])] =
    &[("anyhow", &["prost-derive"]), ("lazy_static", &["num-bigint-dig"]), ("nix", &["taskpawl-bench"])];

/// Maximum number of crates in the tree of the library, itself included. The last ones read JSON strictly, hash git's index, and hold
/// the text helpers that model, tools and engine share.
const LIBRARY_CRATES: usize = 122;

/// The number of crates that the feature `macros` adds at most: `schemars` with what it needs, and our own.
const MACRO_CRATES: usize = 7;

pub(crate) fn metadata() -> Value {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--manifest-path", manifest])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn packages(metadata: &Value) -> BTreeMap<&str, &Value> {
    let list = metadata["packages"].as_array().unwrap();
    list.iter().map(|package| (package["id"].as_str().unwrap(), package)).collect()
}

fn own<'a>(metadata: &'a Value, packages: &BTreeMap<&'a str, &'a Value>) -> Vec<&'a Value> {
    let members = metadata["workspace_members"].as_array().unwrap();
    members.iter().map(|id| packages[id.as_str().unwrap()]).collect()
}

/// Returns the upward edges, each as `from -> to`.
fn upward<'a>(edges: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let allowed: BTreeMap<&str, &[&str]> = ALLOWED.iter().copied().collect();
    let is_allowed = |from: &str, to: &str| allowed.get(from).is_some_and(|list| list.contains(&to));
    edges.filter(|(from, to)| !is_allowed(from, to)).map(|(from, to)| format!("{from} -> {to}")).collect()
}

#[test]
fn dependencies_point_down_only() {
    let metadata = metadata();
    let packages = packages(&metadata);
    let own = own(&metadata, &packages);
    let names: BTreeSet<&str> = own.iter().map(|package| package["name"].as_str().unwrap()).collect();
    let known: BTreeSet<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, known, "a new crate belongs into the table");
    let edges = own.iter().flat_map(|package| {
        let dependencies = package["dependencies"].as_array().unwrap();
        // Test dependencies are not restricted.
        let real = dependencies.iter().filter(|dependency| dependency["kind"] != "dev");
        real.map(|dependency| (package["name"].as_str().unwrap(), dependency["name"].as_str().unwrap()))
    });
    assert_eq!(upward(edges.filter(|(_, to)| names.contains(to))), Vec::<String>::new());
}

#[test]
fn an_upward_edge_is_seen() {
    let edges = [("taskpawl-store", "taskpawl-model"), ("taskpawl-model", "taskpawl-store")];
    assert_eq!(upward(edges.into_iter()), ["taskpawl-model -> taskpawl-store"]);
}

#[test]
fn licences_go_with_ours() {
    let metadata = metadata();
    let unknown: Vec<String> = packages(&metadata)
        .values()
        .filter(|package| !is_usable(package["license"].as_str().unwrap_or_default()))
        .map(|package| format!("{} {}", package["name"], package["license"]))
        .collect();
    assert_eq!(unknown, Vec::<String>::new());
    assert!(!is_usable("GPL-3.0-only") && !is_usable("MIT AND GPL-3.0-only") && !is_usable(""));
}

fn is_usable(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ").replace(['(', ')'], "");
    let all_of = |part: &str| part.split(" AND ").all(|name| LICENCES.contains(&name.trim()));
    let either = expression.split(" OR ").any(all_of);
    // `A AND (B OR C)` without brackets: every part of the conjunction needs a compatible alternative.
    let conjunction =
        expression.split(" AND ").all(|part| part.split(" OR ").any(|name| LICENCES.contains(&name.trim())));
    either && conjunction
}

#[test]
fn banned_crates_stay_out() {
    let metadata = metadata();
    let packages = packages(&metadata);
    let names: BTreeSet<&str> = packages.values().map(|package| package["name"].as_str().unwrap()).collect();
    let is_excepted = |name: &str| {
        let places = EXCEPTED.iter().find(|(excepted, _)| *excepted == name).map(|(_, places)| *places);
        places.is_some_and(|places| dependents(&metadata, name) == places.iter().copied().collect())
    };
    let found: Vec<_> =
        BANNED.iter().filter(|(name, _)| names.contains(name) && !is_excepted(name)).collect();
    assert!(found.is_empty(), "{found:?}");
    assert!(dependents(&metadata, "rustix").len() > 1, "the control");
}

/// Returns the direct dependents of a crate, without dev-dependencies.
fn dependents<'a>(metadata: &'a Value, name: &str) -> BTreeSet<&'a str> {
    let needs = |package: &Value| {
        let dependencies = package["dependencies"].as_array().unwrap();
        dependencies.iter().any(|dependency| dependency["name"] == name && dependency["kind"] != "dev")
    };
    let all = metadata["packages"].as_array().unwrap().iter();
    all.filter(|package| needs(package)).map(|package| package["name"].as_str().unwrap()).collect()
}

#[test]
fn the_library_stays_light() {
    let crates = library_crates(&[
        "--no-default-features",
        "--features",
        "builtin-tools,http,policy-files,programs,sqlite,yaml",
    ]);
    assert!(crates.len() > 10 && crates.len() <= LIBRARY_CRATES, "{} crates: {crates:#?}", crates.len());
    let typed: Vec<_> = library_crates(&[]).difference(&crates).cloned().collect();
    assert!(!typed.is_empty() && typed.len() <= MACRO_CRATES, "{typed:?}");
}

/// Maximum number of crates of the library without any feature: a store in memory or in a JSON file, and tools of the host alone.
const BARE_CRATES: usize = 60;

/// Features of the library, with crates that only they need.
const FEATURE_CRATES: &[(&str, &[&str])] = &[
    ("builtin-tools", &["grep-matcher", "grep-regex", "grep-searcher"]),
    ("http", &["ureq", "rustls"]),
    ("macros", &["schemars", "taskpawl-macros"]),
    ("policy-files", &["toml"]),
    ("programs", &["landlock", "mio", "seccompiler", "socket2"]),
    ("sqlite", &["libsqlite3-sys", "rusqlite"]),
    ("yaml", &["granit-parser"]),
];

#[test]
fn features_bring_their_crates_and_no_others() {
    let bare = library_crates(&["--no-default-features"]);
    assert!(bare.len() > 10 && bare.len() <= BARE_CRATES, "{} crates: {bare:#?}", bare.len());
    let has = |crates: &BTreeSet<String>, name: &str| {
        crates.iter().any(|package| package.split(' ').next() == Some(name))
    };
    for (feature, own) in FEATURE_CRATES {
        let crates = library_crates(&["--no-default-features", "--features", feature]);
        for (other, names) in FEATURE_CRATES {
            for name in *names {
                assert_eq!(has(&crates, name), other == feature, "`{name}` with the feature `{feature}`");
            }
        }
        assert!(own.iter().all(|name| !has(&bare, name)), "{feature}");
    }
}

#[test]
fn the_library_without_programs_needs_nothing_of_linux() {
    let features = "builtin-tools,macros,policy-files,testing,tracing,yaml";
    let on_macos = |features: &str| {
        let target = ["--no-default-features", "--target", "aarch64-apple-darwin", "--features", features];
        let crates = library_crates(&target);
        let linux = ["landlock", "linux-raw-sys", "seccompiler", "inotify"];
        crates.into_iter().filter(|package| linux.contains(&package.split(' ').next().unwrap())).count()
    };
    assert_eq!((on_macos(""), on_macos(features)), (0, 0));
    assert!(on_macos("programs") > 0, "the control");
}

/// The oldest Rust that builds the library. That its own crates use nothing newer of the standard library is checked by clippy.
const LIBRARY_RUST: (u32, u32) = (1, 89);

#[test]
fn the_library_builds_with_an_older_rust() {
    let metadata = metadata();
    let packages = packages(&metadata);
    let crates = library_crates(&[]);
    let is_in = |package: &Value| {
        let name = format!("{} v{}", package["name"].as_str().unwrap(), package["version"].as_str().unwrap());
        crates.contains(&name)
    };
    let required = |package: &Value| {
        let text = package["rust_version"].as_str().unwrap_or("1.0").to_owned();
        let mut parts = text.split('.').map(|part| part.parse::<u32>().unwrap());
        (parts.next().unwrap(), parts.next().unwrap())
    };
    let of_library: Vec<_> = packages.values().filter(|package| is_in(package)).collect();
    assert_eq!(of_library.len(), crates.len());
    let newer: Vec<_> = of_library.iter().filter(|package| required(package) > LIBRARY_RUST).collect();
    assert!(newer.is_empty(), "{newer:#?}");
    let own = of_library.iter().find(|package| package["name"] == "taskpawl").unwrap();
    assert_eq!(required(own), LIBRARY_RUST);
}

/// Returns the crates that the library is built from, itself included.
fn library_crates(features: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "-p", "taskpawl", "-e", "normal", "--prefix", "none"])
        .args(features)
        .args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.split(" (").next()).map(str::to_owned).collect()
}

#[test]
fn every_crate_states_edition_version_and_licence() {
    let metadata = metadata();
    let packages = packages(&metadata);
    for package in own(&metadata, &packages) {
        let name = &package["name"];
        assert_eq!(package["edition"], "2024", "{name}");
        assert_eq!(package["license"], "MIT OR Apache-2.0", "{name}");
        assert!(package["rust_version"].is_string(), "{name}");
    }
}

/// Returns the features of a package that is built by itself.
fn features(package: &str) -> String {
    let args = [
        "tree",
        "--locked",
        "--offline",
        "--edges",
        "normal,build",
        "--prefix",
        "none",
        "--format",
        "{p} {f}",
    ];
    let output = Command::new(env!("CARGO")).args(args).args(["--package", package]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn shipped_programs_are_built_without_fault_injection() {
    for package in ["taskpawl-cli", "taskpawl"] {
        assert!(!features(package).contains("faults"), "{package}");
    }
    assert!(features("integration-tests").contains("faults"), "the control");
}
