//! The example plans of each construct end as their README says, and leave the expected results.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::harness::Cli;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/constructs")
}

/// Returns the plans of the README in order, each with its promised exit code.
fn promised() -> Vec<(String, i32)> {
    let page = fs::read_to_string(directory().join("README.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| [")).map(|row| {
        let name = row.split(']').next().unwrap();
        let exit = row.trim_end_matches(" |").rsplit(' ').next().unwrap();
        (name.to_owned(), exit.parse().unwrap())
    });
    rows.collect()
}

/// Returns one line for each task: its status, and the results of its calls.
fn ends(cli: &Cli) -> String {
    let listed =
        cli.run(&["list", "--json", "--limit", "0", "--fields", "id,status,error,blockedReason,result"]);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let mut text = String::new();
    for task in listed["data"].as_array().unwrap() {
        let said = [&task["error"], &task["result"]["stdout"], &task["result"]["message"]];
        let said = said.iter().find_map(|said| said.as_str()).unwrap_or_default().trim_end();
        let _ = writeln!(
            text,
            "{:<12} {:<9} {said}",
            task["id"].as_str().unwrap(),
            task["status"].as_str().unwrap()
        );
    }
    text
}

#[test]
fn every_plan_is_on_the_page() {
    let mut on_page: Vec<String> = promised().into_iter().map(|(name, _)| format!("{name}.yaml")).collect();
    let files =
        fs::read_dir(directory()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut plans: Vec<String> =
        files.filter(|name| Path::new(name).extension().is_some_and(|end| end == "yaml")).collect();
    on_page.sort();
    plans.sort();
    assert_eq!(on_page, plans);
}

#[test]
fn each_construct_ends_as_its_example_says() {
    for (name, exit) in promised() {
        let cli = Cli::new().with_programs().with_clock();
        for file in fs::read_dir(directory().join("included")).unwrap().map(Result::unwrap) {
            let name = format!("included/{}", file.file_name().display());
            cli.file(&name, &fs::read_to_string(file.path()).unwrap());
        }
        fs::copy(directory().join(format!("{name}.yaml")), cli.path("work").join("plan.yaml")).unwrap();
        let run = cli.run(&["run-all-ready", "--plan", "plan.yaml"]);
        assert_eq!(run.code, Some(exit), "{name}: {}{}", run.stdout, run.stderr);
        insta::assert_snapshot!(name.as_str(), ends(&cli));
    }
}
