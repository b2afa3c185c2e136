//! Descriptors that a program inherits in addition to its streams.

use std::io::{PipeReader, Read as _, pipe};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

use taskpawl_process::{Handover, Program, SpawnError};

use crate::support::Bench;

/// Returns a program that inherits the write end of a pipe, the read end, and the name of the pipe in
/// `/proc`.
fn handing_over(bench: &Bench, script: &str) -> (Program, PipeReader, String) {
    let (reader, writer) = pipe().unwrap();
    let name = format!("pipe:[{}]", rustix::fs::fstat(writer.as_fd()).unwrap().st_ino);
    let handover = Handover { descriptor: Arc::new(OwnedFd::from(writer)), variable: "A_NUMBER" };
    let program = Program { handover: Some(handover), ..bench.program(&["sh", "-c", script]) };
    (program, reader, name)
}

#[tokio::test]
async fn only_the_program_and_its_descendants_inherit_the_descriptor() {
    let bench = Bench::new();
    let script = "sh -c 'echo from within >/proc/self/fd/$A_NUMBER'; ls -l /proc/self/fd";
    let (program, mut reader, name) = handing_over(&bench, script);
    let mut others = bench.program(&["sh", "-c", "echo ${A_NUMBER:-none}; ls -l /proc/self/fd"]);
    // Both run at the same time, so each needs its own output files.
    others.output.stdout.set_extension("other");
    others.output.stderr.set_extension("error");
    let (outcome, other) = tokio::join!(bench.run(&program), bench.run(&others));
    drop(program);
    let (outcome, other) = (outcome.unwrap(), other.unwrap());
    assert!(outcome.code == 0 && outcome.stdout.text.contains(&name), "{outcome:?}");
    assert!(other.stdout.text.starts_with("none\n") && !other.stdout.text.contains(&name), "{other:?}");
    let mut received = String::new();
    // The read ends when no process has the pipe open: neither the program nor the supervisor.
    reader.read_to_string(&mut received).unwrap();
    assert_eq!(received, "from within\n");
}

#[tokio::test]
async fn a_descriptor_and_standard_input_can_be_combined() {
    let bench = Bench::new();
    let (program, mut reader, _) = handing_over(&bench, "cat >/proc/self/fd/$A_NUMBER");
    let program = Program { stdin: Some(b"input".to_vec()), ..program };
    assert_eq!(bench.run(&program).await.unwrap().code, 0);
    drop(program);
    let mut received = String::new();
    reader.read_to_string(&mut received).unwrap();
    assert_eq!(received, "input");
}

#[tokio::test]
async fn without_a_supervisor_no_descriptor_is_passed() {
    let bench = Bench::unsupervised();
    let (program, ..) = handing_over(&bench, "true");
    let error = bench.run(&program).await.unwrap_err();
    assert!(matches!(error, SpawnError::HandoverUnsupervised), "{error}");
}
