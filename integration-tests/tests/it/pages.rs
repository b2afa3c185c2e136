//! The README and the pages of the documentation match the repository: length, test command and links. `taskpawl-cli` runs the
//! commands of the README, `taskpawl` compiles its example.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const README: &str = include_str!("../../../README.md");
const TEST_COMMAND: &str = "./scripts/test";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

#[test]
fn the_readme_is_one_page() {
    let length = README.chars().count();
    assert!(length <= 12_000, "{length} characters: move a part to docs/");
}

#[test]
fn the_readme_has_the_test_command_of_the_ci() {
    assert!(README.contains(&format!("```sh\n{TEST_COMMAND}\n```")));
    let run = fs::read_to_string(root().join(".ci/run")).unwrap();
    assert!(run.contains(TEST_COMMAND), "{run}");
}

#[test]
fn links_of_the_pages_lead_somewhere() {
    let pages = pages();
    assert!(pages.len() > 20, "{pages:?}");
    let mut broken = Vec::new();
    for page in &pages {
        let text = fs::read_to_string(page).unwrap();
        let broken_here = links(&text).into_iter().filter(|link| !leads_somewhere(page, link));
        broken.extend(broken_here.map(|link| format!("{}: {link}", page.display())));
    }
    assert_eq!(broken, Vec::<String>::new());
}

/// Returns the pages for readers: those at the root, in `docs` and `docs/how-to`, beside the crates and beside the examples.
fn pages() -> Vec<PathBuf> {
    let directories =
        ["", "docs", "docs/benchmarks", "docs/how-to", "crates", "examples"].map(|path| root().join(path));
    let examples = fs::read_dir(root().join("examples")).unwrap().map(|entry| entry.unwrap().path());
    let files = directories.into_iter().chain(examples.filter(|path| path.is_dir())).flat_map(|directory| {
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
    });
    files.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

/// Returns the targets of links outside of code.
fn links(text: &str) -> Vec<String> {
    let prose: Vec<&str> = text.split("```").step_by(2).collect();
    let prose: Vec<&str> = prose.iter().flat_map(|part| part.split('`').step_by(2)).collect();
    let after = prose.join("code");
    after.split("](").skip(1).filter_map(|rest| rest.split(')').next().map(str::to_owned)).collect()
}

fn leads_somewhere(page: &Path, link: &str) -> bool {
    if link.starts_with("http") {
        return true;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() { page.to_owned() } else { page.parent().unwrap().join(path) };
    target.exists() && (anchor.is_empty() || anchors(&fs::read_to_string(target).unwrap()).contains(anchor))
}

/// Returns the anchors of the headings of a page, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let prose = text.split("\n```").step_by(2).flat_map(str::lines);
    let headings = prose.filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    headings
        .map(|heading| {
            let kept = heading.to_lowercase().replace(' ', "-");
            kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
        })
        .collect()
}

#[test]
fn broken_links_are_found() {
    let page = root().join("docs/todo.md");
    let found = |link: &str| leads_somewhere(&page, link);
    assert!(found("tools.md#hosts-that-http_request-reaches") && found("#scopes"));
    assert!(!found("nowhere.md") && !found("tools.md#nowhere"));
    assert_eq!(links("a [b](c.md) `[x](y)` d\n```sh\n[p](q)\n```\n[e](f#g)"), ["c.md", "f#g"]);
}
