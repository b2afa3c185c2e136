use std::os::unix::fs::PermissionsExt;

use taskpawl_process::{End, Programs};

use crate::support::Bench;

#[tokio::test]
async fn no_output_leaves_no_files() {
    let mut bench = Bench::new();
    let outcome = bench.shell("true").await;
    assert_eq!((outcome.stdout.file, outcome.stderr.file), (None, None));
    bench.programs = Programs::default();
    assert_eq!(std::fs::read_dir(bench.path("out")).unwrap().count(), 0);
}

#[tokio::test]
async fn output_files_are_whole_and_private() {
    let bench = Bench::new();
    let outcome = bench.shell("echo hello").await;
    let file = outcome.stdout.file.unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "hello\n");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn long_output_keeps_head_and_tail() {
    let mut bench = Bench::new();
    bench.limits.keep_bytes = 40;
    let outcome = bench.shell("seq 1 1000").await;
    insta::assert_snapshot!(outcome.stdout.text, @r"
    1
    2
    3
    4
    5
    6
    7
    8
    9
    10
    … 3853 bytes left out …
    96
    997
    998
    999
    1000
    ");
    assert!(outcome.stdout.truncated);
    assert_eq!(std::fs::metadata(outcome.stdout.file.unwrap()).unwrap().len(), 3893);
}

#[tokio::test]
async fn a_long_stream_leaves_room_for_the_other() {
    let mut bench = Bench::new();
    bench.limits.keep_bytes = 100;
    let outcome = bench.shell("seq 1 1000; echo short >&2").await;
    assert_eq!(outcome.stderr.text, "short\n");
    assert!(outcome.stdout.truncated && !outcome.stderr.truncated);
}

#[tokio::test]
async fn invalid_text_is_replaced_and_characters_are_not_cut() {
    let mut bench = Bench::new();
    let outcome = bench.shell(r"printf 'a\377\033[31mb'").await;
    assert_eq!(outcome.stdout.text, "a\u{fffd}\u{1b}[31mb");

    bench.limits.keep_bytes = 10;
    let outcome = bench.shell("printf 'ää€€€€€€€äää'").await;
    assert_eq!(outcome.stdout.text, "ää\n… 23 bytes left out …\nää");
}

#[tokio::test]
async fn endless_output_is_killed_at_the_limit() {
    let mut bench = Bench::new();
    bench.limits.output_bytes = 1 << 20;
    bench.limits.keep_bytes = 1000;
    // Deaf to `TERM`: only `KILL` ends it.
    let outcome = bench.shell("trap '' TERM; yes").await;
    assert_eq!((outcome.end, outcome.code), (End::OutputLimit, 128 + 9));
    assert_eq!(std::fs::metadata(outcome.stdout.file.unwrap()).unwrap().len(), 1 << 20);
    assert!(outcome.stdout.text.len() < 1100);
}

#[tokio::test]
async fn too_much_output_counts_however_fast_it_came() {
    let mut bench = Bench::new();
    bench.limits.output_bytes = 10;
    let outcome = bench.shell("echo 'more than ten bytes'").await;
    assert_eq!((outcome.end, outcome.code), (End::OutputLimit, 0));
    assert_eq!(outcome.stdout.text, "more than ");
}

#[tokio::test]
async fn a_program_that_reopens_its_output_loses_nothing() {
    let bench = Bench::new();
    let outcome = bench.shell("echo one; echo two >> /dev/stdout; echo three").await;
    assert_eq!(outcome.stdout.text, "one\ntwo\nthree\n");
}
