use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

use taskpawl_process::{End, Environment, SpawnError};

use crate::support::{Bench, exactly};

#[test]
fn a_program_on_a_file_system_that_does_not_answer_is_not_waited_for() {
    let bench = Bench::unsupervised();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build();
    let runtime = runtime.unwrap();
    // The only thread that looks files up hangs.
    let (_held, hung) = std::sync::mpsc::channel::<()>();
    runtime.spawn_blocking(move || hung.recv());
    let error = runtime.block_on(async {
        let deadline = Some(tokio::time::Instant::now() + std::time::Duration::from_millis(20));
        bench.programs.start_piped(bench.program(&["true"]), deadline).await.unwrap_err()
    });
    runtime.shutdown_background();
    insta::assert_snapshot!(error, @"program `true` was not started: its lookup took too long, so a file system may not respond");
}

#[tokio::test]
async fn a_program_gets_its_arguments_directory_environment_and_input() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("sub")).unwrap();
    let script = "pwd; echo \"$1\"; echo \"$A\"; cat; echo oops >&2; exit 3";
    let mut program = bench.program(&["sh", "-c", script, "name", "a  b"]);
    program.cwd = bench.path("sub");
    program.environment = Environment::Inherit(BTreeMap::from([("A".into(), Some("value".into()))]));
    program.stdin = Some(b"input\n".to_vec());

    let outcome = bench.run(&program).await.unwrap();

    assert_eq!((outcome.end, outcome.code, outcome.signal), (End::Exited, 3, None));
    let dir = bench.path("sub").canonicalize().unwrap();
    assert_eq!(outcome.stdout.text, format!("{}\na  b\nvalue\ninput\n", dir.display()));
    assert_eq!(outcome.stderr.text, "oops\n");
}

#[tokio::test]
async fn variables_can_be_removed_or_replaced_entirely() {
    let bench = Bench::new();
    let mut program = bench.program(&["/usr/bin/env"]);
    program.environment = exactly(&[("ONLY", "this")]);
    let outcome = bench.run(&program).await.unwrap();
    let lines: Vec<&str> =
        outcome.stdout.text.lines().filter(|line| !line.starts_with("TASKPAWL_PROCESS=")).collect();
    assert_eq!(lines, ["ONLY=this"]);

    program.environment = Environment::Inherit(BTreeMap::from([("CARGO_PKG_NAME".into(), None)]));
    let outcome = bench.run(&program).await.unwrap();
    assert!(!outcome.stdout.text.contains("CARGO_PKG_NAME="));
}

#[tokio::test]
async fn unread_input_is_harmless() {
    let bench = Bench::new();
    let mut program = bench.program(&["true"]);
    program.stdin = Some(vec![b'x'; 1 << 20]);
    assert_eq!(bench.run(&program).await.unwrap().code, 0);
    program.stdin = None;
    program.argv = vec!["cat".to_owned()];
    assert_eq!(bench.run(&program).await.unwrap().stdout.text, "");
}

#[tokio::test]
async fn many_programs_run_at_once_on_one_thread() {
    let bench = Bench::new();
    let runs = (0..20).map(|index| {
        let mut program = bench.program(&["echo", &index.to_string()]);
        program.output.stdout = bench.path(&format!("out/{index}.stdout"));
        program.output.stderr = bench.path(&format!("out/{index}.stderr"));
        let (programs, limits, cancel) = (bench.programs.clone(), bench.limits, bench.cancel.clone());
        async move { programs.run(&program, &limits, &cancel).await.unwrap().stdout.text }
    });
    let mut set = tokio::task::JoinSet::new();
    runs.for_each(|run| {
        set.spawn(run);
    });
    let mut texts = set.join_all().await;
    texts.sort();
    let mut expected: Vec<String> = (0..20).map(|index| format!("{index}\n")).collect();
    expected.sort();
    assert_eq!(texts, expected);
}

async fn refusal(argv: &[&str], change: impl FnOnce(&Bench, &mut taskpawl_process::Program)) -> SpawnError {
    let bench = Bench::new();
    let mut program = bench.program(argv);
    change(&bench, &mut program);
    bench.run(&program).await.unwrap_err()
}

#[tokio::test]
async fn failures_to_start_are_distinguished() {
    let error = refusal(&["no-such-program"], |_, program| {
        program.environment = exactly(&[("PATH", "/bin:/usr/bin")]);
    });
    let expected =
        "program `no-such-program` is not in PATH (`/bin:/usr/bin`); install it or use its full path";
    assert_eq!(error.await.to_string(), expected);

    let error = refusal(&[], |_, _| {}).await;
    assert!(matches!(error, SpawnError::EmptyCommand), "{error:?}");
    let error = refusal(&["/no/such"], |_, _| {}).await;
    assert!(matches!(error, SpawnError::NotFound { .. }), "{error:?}");
    let error = refusal(&["true"], |_, program| program.cwd = "/no/such".into()).await;
    assert!(matches!(error, SpawnError::WorkingDirectory { .. }), "{error:?}");
    let error = refusal(&["true"], |_, program| program.output.stdout = "/proc/no/such".into()).await;
    assert!(matches!(error, SpawnError::File { .. }), "{error:?}");
    let error = refusal(&["true", "a\0b"], |_, _| {}).await;
    assert!(matches!(error, SpawnError::Start { .. }), "{error:?}");
}

#[tokio::test]
async fn files_that_are_not_programs_are_refused_with_a_hint() {
    let write = |mode: u32, content: &'static str| {
        move |bench: &Bench, _: &mut taskpawl_process::Program| {
            std::fs::write(bench.path("x"), content).unwrap();
            std::fs::set_permissions(bench.path("x"), std::fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    let error = refusal(&["./x"], write(0o600, "")).await;
    assert!(matches!(error, SpawnError::NotExecutable { .. }), "{error:?}");
    let error = refusal(&["./x"], write(0o700, "echo no interpreter\n")).await.to_string();
    assert!(error.ends_with("a script must begin with `#!` and an existing interpreter"), "{error}");
    let error = refusal(&["./x"], write(0o700, "#!/no/such\n")).await.to_string();
    assert!(error.ends_with("a script must begin with `#!` and an existing interpreter"), "{error}");
}
