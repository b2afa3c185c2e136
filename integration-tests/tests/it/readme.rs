//! The README matches the repository: example, test command and links.

const README: &str = include_str!("../../../README.md");
const EMBED: &str = include_str!("../../../crates/taskpawl/examples/embed.rs");
const TEST_COMMAND: &str = "./scripts/test";

#[test]
fn the_library_example_is_the_one_that_is_compiled() {
    assert!(
        README.contains(&format!("```rust\n{}\n```", EMBED.trim_end())),
        "copy examples/embed.rs into README.md"
    );
}

#[test]
fn the_readme_has_the_test_command_of_the_ci() {
    assert!(README.contains(&format!("```sh\n{TEST_COMMAND}\n```")));
    let run = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../.ci/run")).unwrap();
    assert!(run.contains(TEST_COMMAND), "{run}");
}

#[test]
fn links_of_the_readme_exist() {
    let targets = README.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let local = targets.filter(|target| !target.starts_with("http"));
    let missing: Vec<&str> = local
        .filter(|target| {
            !std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("..")
                .join(target.split('#').next().unwrap_or(target))
                .exists()
        })
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}
