//! Output files that stay empty serve the next program.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use taskpawl_process::{Outcome, Programs};

use crate::support::{Bench, until};

async fn run_as(bench: &Bench, number: u32, script: &str) -> Outcome {
    let mut program = bench.program(&["sh", "-c", script]);
    program.output.stdout = bench.path(&format!("out/{number}.stdout"));
    program.output.stderr = bench.path(&format!("out/{number}.stderr"));
    bench.run(&program).await.unwrap()
}

fn inode(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().ino()
}

#[tokio::test]
async fn an_empty_file_serves_the_next_program() {
    let mut bench = Bench::new();
    run_as(&bench, 1, ":").await;
    let inodes = [inode(&bench.path("out/1.stdout")), inode(&bench.path("out/1.stderr"))];
    let second = run_as(&bench, 2, "echo two").await;
    assert_eq!((second.stdout.text.as_str(), second.stderr.text.as_str()), ("two\n", ""));
    assert!(inodes.contains(&inode(&bench.path("out/2.stdout"))), "made anew");
    assert!(!bench.path("out/1.stdout").exists() && !bench.path("out/1.stderr").exists());
    bench.programs = Programs::default();
    assert!(bench.path("out/2.stdout").exists() && !bench.path("out/2.stderr").exists());
}

/// A file serves the next program, so nobody else may get at it.
#[tokio::test]
async fn what_outlives_its_call_prints_to_no_other_one() {
    // A supervisor would kill the program.
    let bench = Bench::unsupervised();
    // It leaves the process group, and so survives the end of the call.
    let script = "setsid sh -c 'trap \"\" PIPE; echo $$ > orphan; until [ -e go ]; do sleep 0.01; done; echo late; \
                  echo late > /dev/stdout; : > gone' 2> /dev/null & until [ -s orphan ]; do :; done";
    run_as(&bench, 1, script).await;
    let orphan = bench.pid("orphan").await;
    let second = run_as(&bench, 2, "touch go; until [ -e gone ]; do sleep 0.01; done; echo two").await;
    assert_eq!(second.stdout.text, "two\n");
    until("the orphan is gone", || crate::support::is_gone(orphan)).await;
}
