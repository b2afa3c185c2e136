//! Invalid plans, one file each: every message names the position, the problem and a fix.

use std::path::{Path, PathBuf};

use taskpawl_model::plan::{PlanError, Position, parse_plan};

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faulty");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Returns whether an error tells how to fix it, by a hint or by naming the expected values.
fn has_remedy(error: &PlanError) -> bool {
    let message = error.problem.to_string();
    error.hint.is_some()
        || ["expected ", "must be ", "must not be ", " needs ", "already taken at", "allowed are", "is read"]
            .iter()
            .any(|words| message.contains(words))
}

#[test]
fn faulty_plans_are_refused_with_position_problem_and_fix() {
    let files = files();
    assert!(files.len() >= 50, "{}", files.len());
    let mut without = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let name = file.file_stem().unwrap().to_str().unwrap();
        let errors = parse_plan(&text).expect_err(name);
        for error in errors.errors() {
            assert_ne!(error.at, Position::default(), "{name}: {error}");
            if !has_remedy(error) {
                without.push(format!("{name}: {error}"));
            }
        }
        insta::assert_snapshot!(name, format!("{text}\n{errors}"));
    }
    assert!(without.is_empty(), "errors without a fix:\n{}", without.join("\n"));
}
