//! Other programs that run graphs of commands, with the same commands.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Failure;
use crate::context::Context;
use crate::floor::spawn::PROGRAM;
use crate::group::Subject;
use crate::measure::{Whose, measure, measure_command, quiet};
use crate::rows::spawn::CALLS;

/// Number of commands for slow runners. Figures are per command, so they stay comparable.
const FEW: usize = 400;

/// Number of commands for pueue, which checks for finished commands only a few times per second.
const FEWEST: usize = 20;

/// Returns all runners; their files are written to `directory`.
pub(crate) fn all(context: &Context, directory: &Path) -> Result<Vec<Subject>, Failure> {
    write_files(directory)?;
    let runner = |name: &str, program: &'static str, count, args: &'static [&'static str]| {
        runner(context, directory, name, program, count, args)
    };
    Ok(vec![
        runner("make -j4", "make", CALLS, &["-s", "-j4", "all"]),
        runner("ninja -j4", "ninja", CALLS, &["--quiet", "-j4"]),
        runner("n2 -j4", "n2", CALLS, &["-j", "4"]),
        runner("just, one at a time", "just", CALLS, &["--quiet", "all"]),
        runner("xargs -P4", "xargs", CALLS, &["-P4", "-n1", PROGRAM]),
        runner("GNU parallel -j4", "parallel", FEW, &["-j4", PROGRAM]),
        runner("doit -n4", "doit", FEW, &["-n4", "-P", "thread"]),
        pueue(context, directory),
    ])
}

fn write_files(directory: &Path) -> Result<(), Failure> {
    let names = |count: usize| (0..count).map(|task| format!("t{task}")).collect::<Vec<_>>();
    let all = names(CALLS).join(" ");
    let make = format!(".PHONY: all {all}\nall: {all}\n{all}:\n\t@{PROGRAM}\n");
    std::fs::write(directory.join("Makefile"), make)?;
    let mut ninja = format!("rule t\n  command = {PROGRAM}\n");
    let mut just = format!("all: {all}\n");
    for name in names(CALLS) {
        writeln!(ninja, "build {name}: t")?;
        writeln!(just, "{name}:\n    @{PROGRAM}")?;
    }
    std::fs::write(directory.join("build.ninja"), ninja)?;
    std::fs::write(directory.join("justfile"), just)?;
    std::fs::write(directory.join("xargs.txt"), names(CALLS).join("\n") + "\n")?;
    std::fs::write(directory.join("parallel.txt"), names(FEW).join("\n") + "\n")?;
    let task = format!(
        "    for task in range({FEW}):\n        yield {{'name': task, 'actions': [['{PROGRAM}']]}}\n"
    );
    std::fs::write(directory.join("dodo.py"), format!("def task_all():\n{task}"))?;
    Ok(())
}

fn runner(
    context: &Context,
    directory: &Path,
    name: &str,
    program: &'static str,
    count: usize,
    args: &'static [&'static str],
) -> Subject {
    let Some(path) = context.peers().find(program) else {
        return Subject::missing(name, format!("`{program}` is not installed"));
    };
    let directory = directory.to_owned();
    Subject::new(name, count, move || {
        for left in [
            ".ninja_log",
            ".ninja_deps",
            ".n2_db",
            ".doit.db",
            ".doit.db.dat",
            ".doit.db.dir",
            ".doit.db.bak",
        ] {
            // The file may not exist.
            let _ = std::fs::remove_file(directory.join(left));
        }
        let mut command = Command::new(&path);
        command.args(args).current_dir(&directory).env("PARALLEL_HOME", directory.join("parallel"));
        match std::fs::File::open(directory.join(format!("{program}.txt"))) {
            Ok(file) => command.stdin(file),
            Err(_) => command.stdin(Stdio::null()),
        };
        measure_command(&mut command)
    })
}

/// Starts and ends the daemon within the measurement, so that its CPU time counts as that of a finished child.
fn pueue(context: &Context, directory: &Path) -> Subject {
    const NAME: &str = "pueue, 4 at once";
    let (Some(client), Some(daemon)) = (context.peers().find("pueue"), context.peers().find("pueued")) else {
        return Subject::missing(NAME, "`pueue` is not installed");
    };
    let directory = directory.join("pueue");
    Subject::new(NAME, FEWEST, move || {
        // The directory may not exist.
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory)?;
        let config = directory.join("pueue.yml");
        let place = directory.display();
        let shared = format!(
            "shared:\n  pueue_directory: {place}\n  runtime_directory: {place}\n  use_unix_socket: true\n"
        );
        std::fs::write(&config, format!("{shared}client: {{}}\ndaemon: {{}}\n"))?;
        Ok(measure(Whose::Children, || through_daemon(&daemon, &client, &config))?.1)
    })
}

fn through_daemon(daemon: &Path, client: &Path, config: &PathBuf) -> Result<(), Failure> {
    let command = |program: &Path| {
        let mut command = Command::new(program);
        command.arg("--config").arg(config).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let mut running = command(daemon).spawn()?;
    let ask = |args: &[&str]| quiet(command(client).args(args));
    // The daemon accepts connections only some time after its start.
    let is_there = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        ask(&["status"]).is_ok()
    });
    let result = if is_there {
        ask(&["parallel", "4"])
            .and_then(|()| (0..FEWEST).try_for_each(|_| ask(&["add", "--", PROGRAM])))
            .and_then(|()| ask(&["wait"]))
    } else {
        Err("the daemon of pueue does not answer".into())
    };
    let end = ask(&["shutdown"]);
    if end.is_err() {
        running.kill()?;
    }
    running.wait()?;
    result.and(end)
}
