use std::os::unix::fs::PermissionsExt;

use taskpawl_process::{End, Outcome, SpawnError};

use crate::support::{Bench, is_gone, until};

async fn run_as(bench: &Bench, number: u32, script: &str) -> Outcome {
    let mut program = bench.program(&["sh", "-c", script]);
    program.output.stdout = bench.path(&format!("out/{number}.stdout"));
    program.output.stderr = bench.path(&format!("out/{number}.stderr"));
    bench.run(&program).await.unwrap()
}

#[tokio::test]
async fn no_output_leaves_no_files() {
    let bench = Bench::new();
    let outcome = bench.shell("true").await;
    assert_eq!((outcome.stdout.file, outcome.stderr.file), (None, None));
    assert_eq!(std::fs::read_dir(bench.path("out")).unwrap().count(), 0);
}

#[tokio::test]
async fn an_old_file_at_the_output_path_is_replaced() {
    let bench = Bench::new();
    run_as(&bench, 1, "echo one; echo one >&2").await;
    let second = run_as(&bench, 1, "echo two").await;
    assert_eq!((second.stdout.text.as_str(), second.stderr.text.as_str()), ("two\n", ""));
    assert_eq!(std::fs::read_to_string(bench.path("out/1.stdout")).unwrap(), "two\n");
    assert!(!bench.path("out/1.stderr").exists());
    std::fs::create_dir(bench.path("out/2.stdout")).unwrap();
    let mut program = bench.program(&["touch", "started"]);
    program.output.stdout = bench.path("out/2.stdout");
    let error = bench.run(&program).await.unwrap_err();
    assert!(matches!(error, SpawnError::File { .. }), "{error}");
    assert!(!bench.path("started").exists());
}

#[tokio::test]
async fn a_surviving_process_cannot_print_into_a_later_call() {
    // Without a supervisor, which would kill the program.
    let bench = Bench::unsupervised();
    // The process leaves its group and therefore survives the end of the call.
    let script = "setsid sh -c 'trap \"\" PIPE; echo $$ > orphan; until [ -e go ]; do sleep 0.01; done; echo late; \
                  echo late > /dev/stdout; : > gone' 2> /dev/null & until [ -s orphan ]; do :; done";
    run_as(&bench, 1, script).await;
    let orphan = bench.pid("orphan").await;
    let second = run_as(&bench, 2, "touch go; until [ -e gone ]; do sleep 0.01; done; echo two").await;
    assert_eq!(second.stdout.text, "two\n");
    until("the orphan is gone", || is_gone(orphan)).await;
}

#[tokio::test]
async fn output_files_are_complete_and_private() {
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
    // Ignores `TERM`, so that only `KILL` ends it.
    let outcome = bench.shell("trap '' TERM; yes").await;
    assert_eq!((outcome.end, outcome.code), (End::OutputLimit, 128 + 9));
    assert_eq!(std::fs::metadata(outcome.stdout.file.unwrap()).unwrap().len(), 1 << 20);
    assert!(outcome.stdout.text.len() < 1100);
}

#[tokio::test]
async fn fast_output_over_the_limit_is_detected() {
    let mut bench = Bench::new();
    bench.limits.output_bytes = 10;
    let outcome = bench.shell("echo 'more than ten bytes'").await;
    // It may end by itself or be killed, depending on timing, so the exit code is not checked.
    assert_eq!(outcome.end, End::OutputLimit);
    assert_eq!(outcome.stdout.text, "more than ");
}

/// Scripts print to `/dev/stdout` like this, and shells open it with truncation.
#[tokio::test]
async fn a_program_that_reopens_its_output_loses_nothing() {
    for bench in [Bench::new(), Bench::unsupervised()] {
        let script = "echo one; echo two >> /dev/stdout; echo three > /dev/stdout; echo four; \
                      echo a >&2; echo b > /dev/stderr; echo c > /proc/self/fd/2; echo d >&2";
        let outcome = bench.shell(script).await;
        assert_eq!(outcome.stdout.text, "one\ntwo\nthree\nfour\n");
        assert_eq!(outcome.stderr.text, "a\nb\nc\nd\n");
        let file = outcome.stderr.file.unwrap();
        assert_eq!(std::fs::read_to_string(file).unwrap(), "a\nb\nc\nd\n");
    }
}

/// More than a pipe holds, to both streams at once, and before the pipes are first read.
#[tokio::test]
async fn large_output_is_complete() {
    for bench in [Bench::new(), Bench::unsupervised()] {
        let outcome = bench.shell("seq 1 100000 & seq 1 100000 >&2; wait").await;
        let numbers: Vec<_> = (1..=100_000).map(|number| number.to_string()).collect();
        let expected = numbers.join("\n") + "\n";
        for stream in [outcome.stdout, outcome.stderr] {
            assert!(std::fs::read_to_string(stream.file.unwrap()).unwrap() == expected);
        }
    }
}

#[tokio::test]
async fn output_is_in_its_file_while_the_program_runs() {
    let bench = Bench::new();
    let running = bench.shell("echo early; until [ -e seen ]; do sleep 0.01; done; echo late");
    let see = async {
        let file = bench.path("out/1.stdout");
        until("it is in its file", || std::fs::read_to_string(&file).is_ok_and(|text| text == "early\n"))
            .await;
        std::fs::write(bench.path("seen"), "").unwrap();
    };
    let (outcome, ()) = tokio::join!(running, see);
    assert_eq!(outcome.stdout.text, "early\nlate\n");
}

/// The alternative would be a result without its output.
#[tokio::test]
async fn output_that_cannot_be_stored_ends_the_program() {
    for script in ["echo lost", "echo lost; exec sleep 600"] {
        let bench = Bench::new();
        // A process that can replace the output file by a link could make the engine overwrite any file.
        std::fs::write(bench.path("precious"), "kept").unwrap();
        let lead = format!("ln -s ../precious {}", bench.path("out/1.stdout").display());
        let error = bench.run_script(&format!("{lead}; {script}")).await.unwrap_err();
        let SpawnError::Output { path, source } = &error else { panic!("{error:?}") };
        assert_eq!((path, source.kind()), (&bench.path("out/1.stdout"), std::io::ErrorKind::AlreadyExists));
        assert_eq!(std::fs::read_to_string(bench.path("precious")).unwrap(), "kept");
    }
}
