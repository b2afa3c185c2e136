//! Tests of the location of a project's store.

use std::fs;
use std::path::Path;

use crate::harness::Cli;

#[test]
fn a_project_has_its_store_outside() {
    let cli = Cli::without_store();
    insta::assert_snapshot!(cli.session(&[
        &["where"],
        &["list"],
        &["init"],
        &["init"],
        &["create", "A", "--id", "a"],
        &["where"],
        &["where", "--json"],
        &["where", "--store", "other.db"],
        &["init", "--share"],
    ]));
    assert!(fs::read_dir(cli.path(".local/state/taskpawl")).unwrap().count() == 1);
    fs::create_dir_all(cli.path("work/deep/down")).unwrap();
    let run = cli.run_in(&cli.path("work/deep/down"), &["list", "--fields", "id"], "").ok();
    assert_eq!(run.json()["data"][0]["id"], "a");
}

#[test]
fn a_directory_that_was_a_project_before_says_so_and_can_begin_anew() {
    let cli = Cli::without_store();
    cli.run(&["init"]).ok();
    let first = cli.run(&["where", "--json"]).ok().json()["data"]["store"].as_str().unwrap().to_owned();
    cli.run(&["create", "A", "--id", "a"]).ok();
    for options in [&["init"][..], &["init", "--new"]] {
        fs::remove_dir_all(cli.path("work")).unwrap();
        fs::create_dir(cli.path("work")).unwrap();
        let run = cli.run(options).ok();
        let (said, tasks) = match options.len() {
            1 => ("its tasks are here again; `taskpawl init --new`".to_owned(), 1),
            _ => (format!("the tasks that were here are kept: `--store {first}`"), 0),
        };
        assert!(run.stderr.contains(&said), "{run}");
        let list = cli.run(&["list", "--json"]).ok().json();
        assert_eq!(list["data"].as_array().unwrap().len(), tasks, "{list}");
        // The second `init` finds a known project and reports nothing.
        assert_eq!(cli.run(&["init"]).ok().stderr, "");
    }
    let first = first.replace("[HOME]", cli.path("").to_str().unwrap().trim_end_matches('/'));
    let list = cli.run(&["list", "--store", &first, "--json"]).ok().json();
    assert_eq!(list["data"][0]["id"], "a");
    // `--new` works without deleting the old store first.
    cli.run(&["create", "B"]).ok();
    cli.run(&["init", "--new"]).ok();
    assert_eq!(cli.run(&["list", "--json"]).ok().json()["data"].as_array().unwrap().len(), 0);
}

#[test]
fn a_moved_project_keeps_its_tasks() {
    let cli = Cli::without_store();
    cli.run(&["init"]).ok();
    cli.run(&["create", "A", "--id", "a"]).ok();
    let moved = cli.path("moved");
    fs::rename(cli.path("work"), &moved).unwrap();
    insta::assert_snapshot!(
        [&["where"][..], &["note", "a", "still here"], &["where"]]
            .map(|args| cli.run_in(&moved, args, "").to_string())
            .join("\n")
    );
}

#[test]
fn a_copied_project_is_asked_about() {
    let cli = Cli::without_store();
    cli.run(&["init"]).ok();
    cli.run(&["create", "A", "--id", "a"]).ok();
    for name in ["shared", "parted"] {
        copy(&cli.path("work"), &cli.path(name));
    }
    let run = |name: &str, args: &[&str]| cli.run_in(&cli.path(name), args, "").to_string();
    insta::assert_snapshot!(
        [
            run("shared", &["list"]),
            run("shared", &["init", "--json"]),
            run("shared", &["init"]),
            run("shared", &["init", "--share"]),
            run("shared", &["list"]),
            run("parted", &["init", "--new"]),
            run("parted", &["list"]),
            run("work", &["list"]),
        ]
        .join("\n")
    );
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.join(".taskpawl")).unwrap();
    for file in fs::read_dir(from.join(".taskpawl")).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), to.join(".taskpawl").join(file.file_name())).unwrap();
    }
}

#[test]
fn a_store_of_ones_own_choice() {
    let cli = Cli::without_store();
    insta::assert_snapshot!(cli.session(&[
        &["init", "--store", "../plans/tasks.db"],
        &["create", "A", "--id", "a"],
        &["where"],
    ]));
    assert!(cli.path("plans/tasks.db").exists());
    let inside = cli.path("work").join("inner");
    let cli = cli.with("XDG_STATE_HOME", inside.to_str().unwrap());
    fs::remove_dir_all(cli.path("work/.taskpawl")).unwrap();
    insta::assert_snapshot!("inside", cli.session(&[&["init"], &["init", "--json"]]));
    let cli = cli.with("TASKPAWL_STORE", "elsewhere.db");
    insta::assert_snapshot!(
        "variable",
        cli.session(&[&["where"], &["init", "--store", "../plans/tasks.db"]])
    );
}

#[test]
fn a_store_is_one_readable_file_where_that_is_wanted() {
    let cli = Cli::without_store();
    insta::assert_snapshot!(cli.session(&[
        &["create", "A", "--id", "a", "--store", "json:tasks.json"],
        &["list", "--store", "json:tasks.json"],
        &["where", "--store", "json:tasks.json", "--json"],
    ]));
    let text = fs::read_to_string(cli.path("work/tasks.json")).unwrap();
    let file: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(file["tasks"][0]["name"], "A");
    cli.file("tasks.json", &text[..text.len() / 2]);
    insta::assert_snapshot!("cut", cli.session(&[&["list", "--store", "json:tasks.json"]]));
}

#[test]
fn a_damaged_project_does_not_matter_to_a_store_that_is_named() {
    let cli = Cli::without_store();
    cli.file(".taskpawl/project.json", "{");
    let refused = cli.run(&["list"]);
    assert!(
        refused.code == Some(8) && refused.stderr.contains("fix the file, or use `--store PATH`"),
        "{refused}"
    );
    let store = cli.path("other.db");
    let store = store.to_str().unwrap();
    cli.run(&["create", "A", "--id", "a", "--store", store]).ok();
    fs::create_dir_all(cli.path("work/deep")).unwrap();
    let cli = cli.with("TASKPAWL_STORE", store);
    let listed = cli.run_in(&cli.path("work/deep"), &["list", "--fields", "id"], "").ok();
    assert_eq!(listed.json()["data"][0]["id"], "a");
    let place = cli.run_in(&cli.path("work/deep"), &["where", "--json"], "").ok().json();
    assert_eq!(place["data"]["root"], "[HOME]/work", "{place}");
}

#[test]
fn a_copied_store_gets_an_id_of_its_own_where_it_is_found_and_the_original_is_named() {
    for (kind, name) in [("", "tasks.db"), ("json:", "tasks.json")] {
        let cli = Cli::without_store();
        for directory in ["original", "copy"] {
            fs::create_dir_all(cli.path(directory)).unwrap();
        }
        let store = |directory: &str| format!("{kind}{}", cli.path(directory).join(name).display());
        fs::write(cli.path("work/plan.yaml"), "tasks: [{id: a, call: {log: {message: x}}}]\n").unwrap();
        cli.run(&["--store", &store("original"), "run-all-ready", "--plan", "plan.yaml"]).ok();
        for entry in fs::read_dir(cli.path("original")).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_file() {
                fs::copy(entry.path(), cli.path("copy").join(entry.file_name())).unwrap();
            }
        }
        let copy_of = |directory: &str| {
            let place = cli.run(&["where", "--json", "--store", &store(directory)]).ok().json();
            place["data"]["copyOf"].as_str().map(str::to_owned)
        };
        assert_eq!(copy_of("original"), None);
        assert_eq!(copy_of("copy"), Some(format!("[HOME]/original/{name}")));
        assert_eq!(copy_of("copy"), None, "it is said once");
    }
}

#[test]
fn the_first_plan_makes_the_project_in_the_working_directory() {
    let cli = Cli::without_store();
    cli.file("plan.yaml", "name: p\ntasks: [{id: a}]\n");
    cli.file("wrong.yaml", "name: p\ntasks: [{id: a, needs: b}]\n");
    let before = cli.session(&[
        &["create", "A", "--needs", "b"],
        &["apply", "wrong.yaml"],
        &["apply", "plan.yaml", "--dry-run"],
        &["run-all-ready", "plan.yaml", "--dry-run"],
        &["list"],
    ]);
    assert!(!cli.path("work/.taskpawl").exists(), "{before}");
    let forecast = cli.run(&["run-all-ready", "plan.yaml", "--dry-run", "--json"]).ok().json();
    assert!(
        forecast["data"]["nextActions"].to_string().contains("run-all-ready --plan plan.yaml"),
        "{forecast}"
    );
    insta::assert_snapshot!(cli.session(&[&["apply", "plan.yaml"], &["list", "--fields", "id"]]));
}

#[test]
fn create_and_runs_of_plans_make_a_project_too() {
    for line in
        [&["create", "A"][..], &["run-all-ready", "plan.yaml"], &["run", "plan.yaml"], &["run-all-ready"]]
    {
        let cli = Cli::without_store();
        cli.file("plan.yaml", "name: p\ntasks: [{id: a}]\n");
        let run = cli.run(line);
        assert!(run.stderr.contains("made [HOME]/work a taskpawl project"), "{run}");
        assert!(cli.path("work/.taskpawl/project.json").exists(), "{run}");
        let again = cli.run(line);
        assert!(!again.stderr.contains("taskpawl project"), "{again}");
    }
}

#[test]
fn a_project_is_made_at_the_git_root() {
    let cli = Cli::without_store();
    fs::create_dir(cli.path("work/.git")).unwrap();
    cli.file("plans/release.yaml", "tasks: [{id: a}]\n");
    let run = cli.run_in(&cli.path("work/plans"), &["apply", "release.yaml"], "").ok();
    assert!(run.stderr.contains("it is the root of a git repository"), "{run}");
    assert!(cli.path("work/.taskpawl").exists() && !cli.path("work/plans/.taskpawl").exists());
    let plans = cli.run(&["list", "--fields", "plan"]).ok().json();
    assert_eq!(plans["data"][0]["plan"], "plans-release", "the plan is named by its path in the project");
}

#[test]
fn a_project_is_not_made_where_init_has_to_be_asked_for() {
    let cli = Cli::without_store();
    fs::create_dir_all(cli.path("work/site/.git")).unwrap();
    let refused = [
        cli.run_in(&cli.path(""), &["create", "A"], ""),
        cli.run_in(Path::new("/"), &["create", "A"], ""),
        cli.run(&["create", "A"]),
        cli.run(&["done", "a"]),
    ];
    insta::assert_snapshot!(refused.map(|run| run.to_string()).join("\n"));
    assert!(!cli.path("work/.taskpawl").exists() && !cli.path(".taskpawl").exists());
    cli.run_in(&cli.path("work/site"), &["create", "A"], "").ok();
}
