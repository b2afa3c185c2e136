use std::sync::Arc;
use std::time::Duration;

use taskpawl_process::{OutputFilter, Program, SpawnError, StreamFilter};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{Bench, is_gone, until};

const GRACE: Duration = Duration::from_millis(200);

fn script(bench: &Bench, script: &str) -> Program {
    bench.program(&["sh", "-c", script])
}

#[tokio::test]
async fn input_and_output_work_while_the_program_runs() {
    for bench in [Bench::new(), Bench::unsupervised()] {
        let program = script(&bench, "while read line; do echo \"heard $line\"; done; echo end >&2; exit 3");
        let mut piped = bench.programs.start_piped(program, None).await.unwrap();
        let (mut input, mut output) = piped.take_pipes().unwrap();
        for word in ["one", "two"] {
            input.write_all(format!("{word}\n").as_bytes()).await.unwrap();
            let mut answer = vec![0; "heard one\n".len()];
            output.read_exact(&mut answer).await.unwrap();
            assert_eq!(answer, format!("heard {word}\n").as_bytes());
        }
        drop(input);
        let end = piped.end(Duration::from_secs(10), 100).await.unwrap();
        assert_eq!((end.code, end.signal, &*end.stderr.text), (3, None, "end\n"));
    }
}

#[tokio::test]
async fn a_program_that_does_not_end_is_killed() {
    let bench = Bench::new();
    let program = script(&bench, "trap '' TERM; echo $$ > pid; while :; do sleep 0.01; done");
    let piped = bench.programs.start_piped(program, None).await.unwrap();
    let pid = bench.pid("pid").await;
    let end = piped.end(GRACE, 100).await.unwrap();
    assert_eq!((end.code, end.signal), (137, Some(9)));
    assert!(is_gone(pid));

    let dropped =
        bench.programs.start_piped(script(&bench, "echo $$ > pid2; exec sleep 1000"), None).await.unwrap();
    let pid = bench.pid("pid2").await;
    drop(dropped);
    until("it is killed", || is_gone(pid)).await;
}

#[tokio::test]
async fn standard_error_is_bounded() {
    let bench = Bench::new();
    let mut piped = bench.programs.start_piped(script(&bench, "yes >&2"), None).await.unwrap();
    assert!(!piped.ended(10_000).await);
    let end = piped.end(GRACE, 100).await.unwrap();
    assert!(end.stderr.truncated);
    let mut piped = bench.programs.start_piped(script(&bench, "echo >&2"), None).await.unwrap();
    assert!(piped.ended(10_000).await);
}

#[tokio::test]
async fn the_last_output_is_never_lost() {
    let bench = Bench::new();
    for _ in 0..100 {
        let program = script(&bench, "echo first >&2; read -r line; echo last >&2");
        let mut piped = bench.programs.start_piped(program, None).await.unwrap();
        let ours = piped.take_pipes().unwrap();
        // The first output has been read, and the pipe is empty, before the rest is written.
        assert!(tokio::time::timeout(Duration::from_millis(5), piped.ended(10_000)).await.is_err());
        drop(ours);
        assert!(piped.ended(10_000).await);
        let end = piped.end(GRACE, 100).await.unwrap();
        assert_eq!((end.code, &*end.stderr.text), (0, "first\nlast\n"));
    }
}

/// A filter that removes every digit.
#[derive(Debug)]
struct NoDigits;

impl OutputFilter for NoDigits {
    fn begin(&self) -> Box<dyn StreamFilter> {
        Box::new(Self)
    }
}

impl StreamFilter for NoDigits {
    fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        out.extend(piece.iter().filter(|byte| !byte.is_ascii_digit()));
    }

    fn finish(self: Box<Self>, out: &mut Vec<u8>) {
        out.extend_from_slice(b"end\n");
    }
}

#[tokio::test]
async fn standard_error_is_filtered_before_it_is_written() {
    let bench = Bench::new();
    bench.programs.filter_output(Arc::new(NoDigits));
    let script = script(&bench, "echo pin 4711 >&2; read line; echo bye 12 >&2");
    let (written, mut piped) =
        (script.output.stderr.clone(), bench.programs.start_piped(script, None).await.unwrap());
    let is_there = || std::fs::read_to_string(&written).is_ok_and(|text| text == "pin \n");
    tokio::select! {
        _ = piped.ended(10_000) => panic!("it still waits for a line"),
        () = until("it is written", is_there) => {}
    }
    let end = piped.end(Duration::from_secs(10), 100).await.unwrap();
    assert_eq!(end.stderr.text, "pin \nbye \nend\nend\n", "the file is filtered again at the end");
}

#[tokio::test]
async fn the_end_of_the_run_is_signalled_and_no_process_survives() {
    let bench = Bench::new();
    let mut piped =
        bench.programs.start_piped(script(&bench, "cat > copy; echo done > end"), None).await.unwrap();
    let deaf =
        bench.programs.start_piped(script(&bench, "echo $$ > pid; exec sleep 1000"), None).await.unwrap();
    let (input, _output) = piped.take_pipes().unwrap();
    let closing = piped.closing().clone();
    let pid = bench.pid("pid").await;
    let keep = async {
        closing.cancelled().await;
        drop(input);
        piped.end(Duration::from_secs(10), 100).await.unwrap().code
    };
    let (code, ()) = tokio::join!(keep, bench.programs.close());
    assert_eq!(code, 0);
    assert_eq!(std::fs::read_to_string(bench.path("end")).unwrap(), "done\n");
    assert!(is_gone(pid));
    drop(deaf);
    let refused = bench.programs.start_piped(script(&bench, "true"), None).await;
    assert!(matches!(refused, Err(SpawnError::Closed)));
}

#[tokio::test]
async fn a_failed_start_is_reported() {
    let bench = Bench::new();
    let refused = bench.programs.start_piped(bench.program(&["no-such-program"]), None).await;
    assert!(matches!(refused, Err(SpawnError::NotInPath { .. })));
}
