//! Output files that stay empty serve the next program, unless somebody still holds them.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
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

#[tokio::test]
async fn a_file_that_a_program_still_holds_is_left_to_it() {
    // A supervisor would kill the program.
    let bench = Bench::unsupervised();
    // It leaves the process group, and so survives the end of the call.
    let script =
        "setsid sh -c 'echo $$ > orphan; exec sleep 60' 2> /dev/null & until [ -s orphan ]; do :; done";
    run_as(&bench, 1, script).await;
    let orphan = bench.pid("orphan").await;
    let held = std::fs::metadata(format!("/proc/{orphan}/fd/1")).unwrap().ino();
    run_as(&bench, 2, "echo two").await;
    assert_ne!(inode(&bench.path("out/2.stdout")), held);
    kill_process(Pid::from_raw(orphan.try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
    until("the orphan is gone", || crate::support::is_gone(orphan)).await;
}
