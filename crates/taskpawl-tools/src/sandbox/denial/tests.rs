//! Hints for the denials of a sandbox, and output that must not lead to a hint.

use std::sync::Arc;

use taskpawl_process::{Captured, End, Enforcement, Environment, OutputFiles, RefusedAccess, ResourceLimits};

use super::super::closed::{Opener, Place, Rules};
use super::network::NO_NETWORK;
use super::*;

fn said(stderr: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    for name in ["p/sub", "p/.git/hooks", "home/.ssh", "srv"] {
        std::fs::create_dir_all(at(name)).unwrap();
    }
    std::fs::write(at("p/.git/config"), "").unwrap();
    let profile = Profile {
        write: vec![at("p")],
        read: vec![at("home")],
        hidden: vec![at("home/.ssh"), at("p/.env")],
        read_only: vec![at("p/.git/hooks"), at("p/.git/config")],
        ..Profile::default()
    };
    let top = dir.path().to_str().unwrap();
    let stderr = stderr.replace("[]", top);
    of(Sandbox::On(Arc::new(profile)), at("p/sub"), 1, &stderr).unwrap_or_default().replace(top, "[]")
}

fn of(sandbox: Sandbox, cwd: PathBuf, code: i32, stderr: &str) -> Option<String> {
    let output = OutputFiles { stdout: PathBuf::new(), stderr: PathBuf::new() };
    let (argv, environment) = (vec!["curl".to_owned()], Environment::default());
    let program = Program { argv, cwd, environment, stdin: None, handover: None, output, sandbox };
    let own = Place { path: "/state/taskpawl".into(), opener: Opener::Nobody };
    let rules = Rules { hidden: vec![own], ..Rules::default() };
    let closed = ClosedPlaces::new(Path::new("/"), rules, None, None);
    hint(&program, &outcome(code, stderr), &closed).map(|hint| hint.text)
}

fn outcome(code: i32, stderr: &str) -> Outcome {
    let captured = |text: &str| Captured { text: text.to_owned(), bytes: 0, truncated: false, file: None };
    let (stdout, stderr) = (captured(""), captured(stderr));
    Outcome { end: End::Exited, code, signal: None, stdout, stderr, enforcement: None, refused: Vec::new() }
}

#[test]
fn curl_may_be_silent_about_the_network() {
    let of_curl = |network, code| {
        let profile = Profile { network, ..Profile::default() };
        of(Sandbox::On(Arc::new(profile)), "/".into(), code, "")
    };
    assert_eq!(of_curl(Network::None, 6).as_deref(), Some(NO_NETWORK));
    assert_eq!(of_curl(Network::None, 22), None);
    assert_eq!(of_curl(Network::Full, 6), None);
}

#[test]
fn a_place_that_is_open_stays_where_it_is() {
    for line in [
        "mv: cannot move '../../p' to '../../q': Read-only file system",
        "mv: cannot remove '../../p': Device or resource busy",
        "OSError: [Errno 30] Read-only file system: '[]/p' -> '[]/q'",
    ] {
        assert_eq!(said(line), "`[]/p` itself is writable, but programs cannot move, replace or remove it");
    }
    assert_eq!(said("mv: cannot move 'a' to '../../p/b': Read-only file system"), "");
    assert_eq!(said("ls: cannot open directory '../../p': Permission denied"), "");
}

#[test]
fn the_denial_is_found_in_what_a_program_says() {
    insta::assert_snapshot!(said("touch: cannot touch '[]/home/x': Permission denied"), @"programs in the sandbox can only write to the project; `--allow-write []/home` makes this path writable");
    insta::assert_snapshot!(said("/bin/sh: 1: cannot create []/home/out: Permission denied\nbuild failed"), @"programs in the sandbox can only write to the project; `--allow-write []/home` makes this path writable");
    insta::assert_snapshot!(said("bash: line 1: []/home/.ssh/id: Permission denied"), @"`[]/home/.ssh/id` is hidden in the sandbox; `--allow-read []/home/.ssh/id` makes it readable");
    insta::assert_snapshot!(said("cat: ../.env: Permission denied"), @"`[]/p/.env` is hidden in the sandbox; `--allow-read []/p/.env` makes it readable");
    insta::assert_snapshot!(said("cp: cannot create regular file '../.git/hooks/pre-commit': Read-only file system"), @"`[]/p/.git/hooks/pre-commit` is protected in the sandbox, because other programs run or load it; `--allow-write []/p/.git/hooks` makes it writable");
    insta::assert_snapshot!(said("Error: EACCES: permission denied, mkdir '[]/srv/data'"), @"`[]/srv/data` is outside the sandbox; `--allow-read []/srv` makes it readable, `--allow-write []/srv` writable");
    insta::assert_snapshot!(said("curl: (6) Could not resolve host: example.com"), @"programs have no network in the sandbox; `--allow-net` enables it");
}

#[test]
fn names_of_errors_are_whole_words() {
    for line in [
        "FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'",
        "ModuleNotFoundError: No module named 'requests'",
        "botocore.errorfactory.ResourceNotFoundException: table not found",
        "System.IO.FileNotFoundException: Could not load file",
        "assert error.code == enotfound",
        "npm ERR! Could not resolve dependency: react@18",
        "[vite] Could not resolve './button' from src/app.js",
        "prefetch failed",
    ] {
        assert_eq!(said(line), "", "{line}");
    }
    for line in [
        "Error: getaddrinfo ENOTFOUND packages.example.org",
        "npm error code ENOTFOUND",
        "errno: 'EAI_AGAIN',",
        "connect ENETUNREACH 1.1.1.1:443 - Local (0.0.0.0:0)",
        "ssh: Could not resolve hostname github.com: Temporary failure in name resolution",
        "fatal: unable to access 'https://x.org/': Could not resolve host: x.org",
        "OSError: [Errno 101] Network is unreachable",
    ] {
        assert_eq!(said(line), NO_NETWORK, "{line}");
    }
}

#[test]
fn git_says_from_the_top_of_its_repository_what_it_could_not_write() {
    let expected = "`[]/p/.git/config` is protected in the sandbox, because other programs run or load it; `--allow-write []/p/.git/config` makes it writable";
    for line in [
        "error: could not write config file .git/config: Device or resource busy\nfatal: could not set 'remote.x.url' to 'y'",
        "error: could not lock config file ../.git/config: Read-only file system",
        "rm: cannot remove '../.git/config': Device or resource busy",
        "mv: EBUSY: resource busy or locked, rename 'x' -> '[]/p/.git/config'",
    ] {
        assert_eq!(said(line), expected, "{line}");
    }
    assert_eq!(said("umount: []/home/x: Device or resource busy"), "", "no sandbox does that");
}

#[test]
fn names_alone_are_protected_where_only_one_place_can_be_meant() {
    let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
    let profile = Profile {
        write: paths(&["/p"]),
        read_only: paths(&["/p/Makefile", "/p/.git/config", "/p/a/x.toml", "/p/b/x.toml"]),
        hidden: paths(&["/p/dev.sock"]),
        ..Profile::default()
    };
    let met = |line: &str| {
        let unopened = Unopened::default();
        let context = DenialContext { profile: &profile, cwd: Path::new("/p"), unopened: &unopened };
        let said = of_lines(context, line)?;
        Some(said.text.split('`').nth(1).unwrap_or_default().to_owned())
    };
    for (line, place) in [
        ("sh: 1: cannot create Makefile: Permission denied", "/p/Makefile"),
        ("/bin/sh: 1: cannot create Makefile: Read-only file system", "/p/Makefile"),
        ("bash: line 1: Makefile: Read-only file system", "/p/Makefile"),
        ("open Makefile: read-only file system", "/p/Makefile"),
        ("sh: 1: cannot create config: Read-only file system", "/p/.git/config"),
        ("bash: line 1: config: Read-only file system", "/p/.git/config"),
        ("rm: cannot remove 'dev.sock': Device or resource busy", "/p/dev.sock"),
        ("Error: connect ECONNREFUSED ./dev.sock", "/p/dev.sock"),
    ] {
        assert_eq!(met(line).as_deref(), Some(place), "{line}");
    }
    for line in [
        "sh: 1: cannot create config: Permission denied",
        "sh: 1: cannot create x.toml: Read-only file system",
        "sh: 1: cannot create other: Read-only file system",
        "make: *** No rule to make target 'Makefile'",
        "Makefile: 3: recipe for target 'all' failed",
        "the Makefile: Permission denied",
        "Makefile: no such target",
        "Error: connect ECONNREFUSED 127.0.0.1:5432",
    ] {
        assert_eq!(met(line), None, "{line}");
    }
}

#[test]
fn who_ends_well_may_have_met_what_is_protected_too() {
    let (profile, cwd) = (
        Profile { write: vec!["/p".into()], read_only: vec!["/p/.git/config".into()], ..Profile::default() },
        PathBuf::from("/p"),
    );
    let output = OutputFiles { stdout: PathBuf::new(), stderr: PathBuf::new() };
    let (argv, environment, sandbox) =
        (vec!["git".to_owned()], Environment::default(), Sandbox::On(Arc::new(profile)));
    let program = Program { argv, cwd, environment, stdin: None, handover: None, output, sandbox };
    let line = "error: could not write config file .git/config: Device or resource busy";
    let met =
        met_protected(&program, &outcome(0, &format!("Cloning …\n{line}\n{line}")), &ClosedPlaces::default());
    let paths: Vec<_> = met.iter().map(|(path, _)| path.to_str().unwrap()).collect();
    assert_eq!(paths, ["/p/.git/config"]);
    let other = outcome(0, "touch: /p/x: Permission denied");
    assert_eq!(met_protected(&program, &other, &ClosedPlaces::default()), []);
}

#[test]
fn what_a_server_says_of_a_denial_is_understood() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("p")).unwrap();
    std::fs::create_dir_all(dir.path().join("srv")).unwrap();
    let profile = Profile { write: vec![dir.path().join("p")], ..Profile::default() };
    let held = |sandbox| Denials { sandbox, cwd: dir.path().join("p"), unopened: Arc::default() };
    let said = |denials: &Denials, text: &str| {
        let top = dir.path().to_str().unwrap();
        denials
            .hint_now(&text.replace("[]", top))
            .map_or_else(String::new, |hint| hint.text)
            .replace(top, "[]")
    };
    let on = held(Sandbox::On(Arc::new(profile)));
    insta::assert_snapshot!(said(&on, "Error: EACCES: permission denied, open '[]/srv/a'"), @"`[]/srv/a` is outside the sandbox; `--allow-read []/srv` makes it readable, `--allow-write []/srv` writable");
    insta::assert_snapshot!(said(&on, "Error: Cannot find module '[]/srv'"), @"`[]/srv` is outside the sandbox; `--allow-read []/srv` makes it readable, `--allow-write []/srv` writable");
    assert_eq!(said(&on, "TypeError: fetch failed"), NO_NETWORK);
    assert_eq!(said(&on, "httpx.ConnectError: All connection attempts failed"), NO_NETWORK);
    insta::assert_snapshot!(said(&on, "sh: 0: cannot open []/srv: No such file"), @"`[]/srv` is outside the sandbox; `--allow-read []/srv` makes it readable, `--allow-write []/srv` writable");
    assert_eq!(said(&on, "Error: Cannot find module 'left-pad'"), "");
    assert_eq!(said(&held(Sandbox::Off), "Error: EACCES: permission denied, open '[]/srv/a'"), "");
}

#[test]
fn what_the_sandbox_did_not_do_is_not_put_down_to_it() {
    assert_eq!(said("cat: []/p/secret: Permission denied"), "");
    assert_eq!(said("cat: nothing: No such file or directory"), "");
    assert_eq!(said("Permission denied"), "");
    assert_eq!(said("test []/home/x failed"), "");
    let off = of(Sandbox::Off, "/".into(), 1, "touch: cannot touch '/etc/x': Permission denied");
    assert_eq!(off, None);
}

#[test]
fn a_refused_name_explains_errors_of_the_network_alone() {
    let host = |name: &str| RefusedAccess::Host { name: name.to_owned() };
    let program = |sandbox| Program {
        argv: vec!["npm".to_owned()],
        cwd: "/".into(),
        environment: Environment::default(),
        stdin: None,
        handover: None,
        output: OutputFiles { stdout: PathBuf::new(), stderr: PathBuf::new() },
        sandbox,
    };
    let of = |stderr: &str, refused: &[RefusedAccess]| {
        let outcome = Outcome { refused: refused.to_vec(), ..outcome(1, stderr) };
        let sandbox = Sandbox::On(Arc::new(Profile::default()));
        hint(&program(sandbox), &outcome, &ClosedPlaces::default())
    };
    let asked = [host("registry.test"), host("b.test")];
    let unresolved = of("getaddrinfo ENOTFOUND registry.test", &asked).unwrap();
    assert_eq!(unresolved.grant, Some(Grant::Host("registry.test".to_owned())));
    insta::assert_snapshot!(unresolved, @"programs looked up `registry.test` (and 1 more, in `sandbox.refused` of the result), which is not granted; `--allow-host registry.test` lets them reach it, if you trust this name; `taskpawl allow` remembers it");
    assert_eq!(of("", &asked), Some(unresolved));
    assert_eq!(
        of("npm error request to https://b.test/x failed", &asked).unwrap().grant,
        Some(Grant::Host("b.test".to_owned()))
    );
    // Another error is not blamed on a name that the program can do without.
    assert_eq!(of("assertion failed: left == right", &asked), None);
    let other = of("write: file too large", &asked).unwrap();
    assert_eq!(other.grant, None);
    // A name in a question can be any text, which must not reach a command line.
    for name in ["x; rm -rf ~", "$(id)", "a b", "-x", "127.0.0.1", "localhost"] {
        assert_eq!(of("", &[host(name)]), None, "{name}");
    }
    let socket = [RefusedAccess::Socket { path: "/run/x.sock".into() }];
    let tried = of("x: could not connect to the engine at unix:///run/x.sock", &socket).unwrap();
    assert_eq!(tried.grant, None);
    insta::assert_snapshot!(tried, @"programs tried the socket `/run/x.sock` of another program; `taskpawl allow` shows it, and `taskpawl allow --socket /run/x.sock` opens it to the programs of a plan");
    assert_eq!(of("assertion failed", &socket), None);
    let address = RefusedAccess::Address {
        host: "a.test".to_owned(),
        address: "169.254.169.254".parse().unwrap(),
        reason: "a link-local address",
    };
    let explained = of("", &[address]).unwrap();
    assert_eq!(explained.grant, None);
    insta::assert_snapshot!(explained, @"the granted name `a.test` leads to 169.254.169.254, a link-local address, which no grant opens");
}

#[test]
fn limits_of_all_programs_together_are_told() {
    let limits = ResourceLimits { memory: Some(1 << 20), processes: Some(9), ..ResourceLimits::default() };
    let profile = Arc::new(Profile { limits, ..Profile::default() });
    let said = |code, stderr| of(Sandbox::On(Arc::clone(&profile)), "/".into(), code, stderr);
    insta::assert_snapshot!(said(2, "sh: 1: Cannot fork").unwrap(), @"the programs of the run may have 9 processes in total; set `processes` in `[sandbox]` of the configuration");
    insta::assert_snapshot!(said(1, "OSError: [Errno 24] Too many open files: '/dev/null'").unwrap(), @"a program in the sandbox may have 1024 open files; `--sandbox off` removes the limit");
    assert_eq!(said(137, "Killed"), None, "no cgroup holds it");
    let too_large = "a program in the sandbox may write 17179869184 bytes to each file; `--sandbox off` removes the limit";
    assert_eq!(said(1, "dd: error writing 'f': File too large").unwrap(), too_large);
    assert_eq!(said(153, "").unwrap(), too_large);

    let mut enforcement = Enforcement::default();
    enforcement.cgroup = true;
    let mut outcome = outcome(137, "Killed");
    outcome.enforcement = Some(Arc::new(enforcement));
    insta::assert_snapshot!(of_memory(&profile, &outcome).unwrap(), @"it was probably killed because the programs of the run share 1048576 bytes of memory; set `memory` in `[sandbox]` of the configuration");
}

#[test]
fn the_store_opens_to_nobody_and_the_way_to_the_plan_is_told() {
    insta::assert_snapshot!(said("error: failed to read `/state/taskpawl/a/project.json`: No such file or directory\nhint: check the path"), @"programs cannot open the store of the plan; `planAccess: read` (or `add`) on the call lets its programs use `taskpawl` instead");
    assert_eq!(said("`/state/taskpawl/a/project.json` is fine"), "");
}

#[test]
fn what_is_hidden_may_stand_there_empty() {
    insta::assert_snapshot!(said("cat: []/home/.ssh: No such file or directory"), @"`[]/home/.ssh` is hidden in the sandbox; `--allow-read []/home/.ssh` makes it readable");
}

#[test]
fn what_is_there_outside_and_not_inside_is_told() {
    insta::assert_snapshot!(said("ls: cannot access '[]/srv': No such file or directory"), @"`[]/srv` is outside the sandbox; `--allow-read []/srv` makes it readable, `--allow-write []/srv` writable");
    assert_eq!(said("ls: cannot access '[]/srv/nothing': No such file or directory"), "");
    insta::assert_snapshot!(said("sh: 1: cannot create []/srv/new: Directory nonexistent"), @"`[]/srv/new` is outside the sandbox; `--allow-write []/srv` makes it writable");
    insta::assert_snapshot!(said("sh: 1: cannot create ../../srv/new: Directory nonexistent"), @"`[]/srv/new` is outside the sandbox; `--allow-write []/srv` makes it writable");
    for line in [
        "touch: cannot touch '[]/srv/new': No such file or directory",
        "touch: cannot touch '../../srv/new': No such file or directory",
        "mkdir: cannot create directory ‘../../srv/new’: No such file or directory",
        "cp: cannot create regular file '../../srv/new': No such file or directory",
        "mv: cannot move 'x' to '../../srv/new': No such file or directory",
        "tee: ../../srv/new: No such file or directory",
        "FileNotFoundError: [Errno 2] No such file or directory: '../../srv/new'",
        "Error: ENOENT: no such file or directory, open '../../srv/new'",
        "open ../../srv/new: no such file or directory",
    ] {
        let expected = "`[]/srv/new` is outside the sandbox; `--allow-write []/srv` makes it writable";
        assert_eq!(said(line), expected, "{line}");
    }
    insta::assert_snapshot!(said("mkdir: cannot create directory '../../new': Read-only file system"), @"`[]/new` is outside the sandbox; `--allow-write []` makes it writable");
    for line in [
        "touch: cannot touch '../../none/new': No such file or directory",
        "touch: cannot touch '../none/new': No such file or directory",
        "FileNotFoundError: [Errno 2] No such file or directory: 'new'",
        "cat: ../../srv/new: No such file or directory",
        "sh: 1: cannot create []/srv/none/new: Directory nonexistent",
        "sh: 1: cannot create none/new: Directory nonexistent",
        "sh: 1: cannot create ../none/new: Directory nonexistent",
    ] {
        assert_eq!(said(line), "", "{line}");
    }
}

#[test]
fn no_flag_is_named_for_what_no_flag_opens() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    for name in ["p/infra", "p/diary", "home/.config/taskpawl"] {
        std::fs::create_dir_all(at(name)).unwrap();
    }
    let profile = Profile {
        write: vec![at("p")],
        read: vec![at("home")],
        hidden: vec![at("p/diary")],
        read_only: vec![at("p/infra"), at("home/.config/taskpawl")],
        ..Profile::default()
    };
    let place = |name: &str, opener| Place { path: at(name), opener };
    let rules = Rules {
        hidden: vec![place("p/diary", Opener::Configuration)],
        read_only: vec![
            place("p/infra", Opener::Configuration),
            place("home/.config/taskpawl", Opener::Nobody),
        ],
        ..Rules::default()
    };
    let closed = ClosedPlaces::new(&at("p"), rules, None, None);
    let top = dir.path().to_str().unwrap();
    let said = |line: &str| {
        let unopened = closed.unopened();
        let context = DenialContext { profile: &profile, cwd: &at("p"), unopened: &unopened };
        of_lines(context, &line.replace("[]", top))
            .map_or_else(String::new, |hint| hint.text)
            .replace(top, "[]")
    };
    insta::assert_snapshot!(said("sh: 1: cannot create []/home/.config/taskpawl/config.toml: Read-only file system"), @"`[]/home/.config/taskpawl/config.toml` is closed to programs, because it controls their permissions, and no flag opens it; change it yourself, outside the run");
    insta::assert_snapshot!(said("touch: cannot touch 'infra/a': Read-only file system"), @"`[]/p/infra/a` is protected in the sandbox, because `protect` in `[sandbox]` of the configuration contains `[]/p/infra`, and no flag opens it; remove it there to let programs in");
    insta::assert_snapshot!(said("cat: diary/x: Permission denied"), @"`[]/p/diary/x` is hidden in the sandbox, because `hide` in `[sandbox]` of the configuration contains `[]/p/diary`, and no flag opens it; remove it there to let programs in");
    let hidden = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        of_hidden(&closed, &at("p"), &names).unwrap_or_default().replace(top, "[]")
    };
    insta::assert_snapshot!(hidden(&["diary/x"]), @"`diary/x` is hidden in the sandbox, so it looks empty to programs; `hide` in `[sandbox]` of the configuration contains `[]/p/diary`");
    insta::assert_snapshot!(hidden(&[".env"]), @"`.env` is hidden in the sandbox, so it looks empty to programs; `--allow-read .env` makes it readable");
    insta::assert_snapshot!(hidden(&[".env", "a/.env"]), @"`.env`, `a/.env` are hidden in the sandbox, so it looks empty to programs; `--allow-read .env` makes the first of them readable");
    assert_eq!(hidden(&[]), "");
}

#[test]
fn what_a_run_may_grant_is_named_apart_from_the_text() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    for name in ["p/.git/hooks", "home/.ssh", "other", "shared"] {
        std::fs::create_dir_all(at(name)).unwrap();
    }
    let profile = Profile {
        write: vec![at("p")],
        read: vec![at("home"), at("shared")],
        hidden: vec![at("home/.ssh")],
        read_only: vec![at("p/.git/hooks")],
        ..Profile::default()
    };
    let top = dir.path().to_str().unwrap();
    let grant = |line: &str| {
        let line = line.replace("[]", top);
        let context = DenialContext { profile: &profile, cwd: &at("p"), unopened: &Unopened::default() };
        of_lines(context, &line).unwrap().grant
    };
    assert_eq!(grant("curl: (6) Could not resolve host: example.com"), Some(Grant::Network));
    assert_eq!(
        grant("sh: 1: cannot create []/other/f: Read-only file system"),
        Some(Grant::Write(at("other")))
    );
    assert_eq!(
        grant("touch: cannot touch '[]/shared/x': Permission denied"),
        Some(Grant::Write(at("shared")))
    );
    assert_eq!(
        grant("sh: 1: cannot create []/other/a b: Permission denied"),
        Some(Grant::Write(at("other")))
    );
    assert_eq!(grant("cat: []/other: Permission denied"), Some(Grant::Read(at("other"))));
    // Secrets, and files that other programs obey: only a person who types the path opens them.
    assert_eq!(grant("cat: []/home/.ssh/id: Permission denied"), None);
    assert_eq!(grant("cp: cannot create regular file '.git/hooks/x': Read-only file system"), None);
    // All around the project and the home. The project of a library need not be the directory of its process.
    assert_eq!(grant("cat: []: Permission denied"), None);
    assert_eq!(grant("cat: /: Permission denied"), None);
    assert_eq!(grant("sh: 1: cannot create /x: Read-only file system"), None);
}
