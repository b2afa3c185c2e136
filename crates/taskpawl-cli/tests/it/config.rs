//! The layers of the configuration.

use std::fs;

use crate::harness::Cli;

fn user_file(cli: &Cli, content: &str) {
    let dir = cli.path(".config/taskpawl");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("config.toml"), content).unwrap();
}

#[test]
fn each_layer_goes_over_the_one_before() {
    let cli = Cli::new().with("TASKPAWL_LEASE", "2h");
    insta::assert_snapshot!("defaults", cli.session(&[&["config", "list", "--origin"], &["config", "path"]]));
    cli.file("taskpawl.toml", "# of the project\njobs = 4\nlease = \"10m\"\nlimit = 3\n");
    user_file(&cli, "actor = \"ada\"\nlimit = 2\n");
    insta::assert_snapshot!(cli.session(&[
        &["config", "list", "--origin"],
        &["config", "list"],
        &["config", "list", "--actor", "eve", "--color", "never", "--json"],
        &["config", "get", "actor"],
        &["config", "get", "lease", "--json"],
        &["config", "get", "leese"],
        &["config", "get", "xyz"],
        &["config", "path", "--json"],
    ]));
    for name in ["a", "b", "c"] {
        cli.run(&["create", name, "--id", name]).ok();
    }
    assert_eq!(cli.run(&["list", "--fields", "id"]).ok().json()["data"].as_array().unwrap().len(), 2);
    let claim = cli.run(&["claim", "a", "--json"]).ok().json();
    assert_eq!(claim["data"]["claim"]["actor"], "ada");
    assert_eq!(claim["data"]["claim"]["leaseUntil"], "2026-01-02T05:04:05Z");
}

#[test]
fn a_wrong_file_is_refused_with_the_line() {
    for (content, what) in [
        ("\nactro = \"x\"\n", "misspelt"),
        ("lease = \"soon\"\n", "value"),
        ("jobs = \"4\"\n", "kind"),
        ("jobs = 0\n", "range"),
        ("actor = \n", "syntax"),
        ("colour = \"auto\"\n", "colour"),
        ("jobs = 4\nactor = \"ada\"\n", "actor"),
    ] {
        let cli = Cli::new();
        cli.file("taskpawl.toml", content);
        insta::assert_snapshot!(what, cli.run(&["create", "x"]));
    }
    let cli = Cli::new().with("TASKPAWL_COLOR", "pink");
    insta::assert_snapshot!("variable", cli.run(&["list", "--json"]));
}

/// A path that exists but is no file is an error: ignoring it would silently drop settings.
#[test]
fn what_is_no_file_is_refused_with_what_it_is() {
    let make = |kind: &str, path: &std::path::Path| match kind {
        "a directory" => fs::create_dir(path).unwrap(),
        "a pipe" => rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU).unwrap(),
        _ => std::os::unix::fs::symlink("gone", path).unwrap(),
    };
    let places = [
        "work/taskpawl.toml",
        "work/taskpawl-policy.toml",
        ".config/taskpawl/config.toml",
        ".config/taskpawl/policy.toml",
    ];
    for (kind, says) in [
        ("a directory", "it is a directory, not a file; replace it with a file, or remove it"),
        ("a pipe", "it is a pipe, not a file; replace it with a file, or remove it"),
        ("a link", "` is a link to `gone`, which does not exist; create it, or remove the link"),
    ] {
        for place in places {
            let cli = Cli::new();
            fs::create_dir_all(cli.path(".config/taskpawl")).unwrap();
            make(kind, &cli.path(place));
            let refused = cli.run(&["create", "x"]);
            assert_eq!(refused.code, Some(2), "{kind} {place}: {refused}");
            assert!(refused.stderr.contains(place) && refused.stderr.contains(says), "{refused}");
            let looked = cli.run(&["list"]);
            assert_eq!(looked.code == Some(0), place.starts_with("work/"), "{kind} {place}: {looked}");
            assert!(looked.stderr.contains(says), "{looked}");
        }
        let cli = Cli::new();
        make(kind, &cli.path("work/.mcp.json"));
        let run = cli.run(&["tools", "list"]).ok();
        assert!(run.stderr.contains(says) && run.stderr.contains("its servers are left out"), "{run}");
    }
    let cli = Cli::new();
    std::os::unix::fs::symlink("gone", cli.path(".config")).unwrap();
    let refused = cli.run(&["create", "x"]);
    assert!(refused.stderr.contains("/.config` is a link to `gone`, which does not exist"), "{refused}");
}

/// A program of a plan may have damaged these files. Reading commands must still work, so that a person can
/// investigate.
#[test]
fn who_only_looks_goes_on_without_what_is_wrong_in_the_project() {
    for (file, content, problem) in [
        ("taskpawl.toml", "jobs = 4\nactor = \n", "line 2"),
        (
            "taskpawl.toml",
            "[sandbox]\nwrite = [\"/\"]\n",
            "line 2: the file of a project cannot give programs more",
        ),
        ("taskpawl-policy.toml", "[[rules]]\ndecision = \"maybe\"\n", "line 2"),
    ] {
        let cli = Cli::new();
        cli.run(&["create", "a", "--id", "a"]).ok();
        cli.file(file, content);
        let looks: [&[&str]; 8] = [
            &["list"],
            &["show", "a"],
            &["ready"],
            &["history"],
            &["runs"],
            &["prime"],
            &["explain", "a"],
            &["watch", "--once"],
        ];
        for words in looks {
            let run = cli.run(words).ok();
            let is_told = run.stderr.contains(problem) && run.stderr.contains(file);
            assert!(is_told && run.stderr.contains("this command goes on without that file"), "{run}");
        }
        let found = cli.run(&["doctor"]);
        assert!(found.code == Some(8) && found.stdout.contains(problem), "{found}");
        let does: [&[&str]; 7] = [
            &["run-all-ready"],
            &["run-all-ready", "--dry-run"],
            &["run", "a"],
            &["tools", "call", "log", "--args", "{\"message\": \"x\"}"],
            &["mcp"],
            &["create", "b"],
            &["claim", "a"],
        ];
        for words in does {
            let run = cli.run(words);
            assert!(run.code == Some(2) && run.stderr.contains(problem), "{run}");
        }
        assert_eq!(cli.run(&["list", "--json"]).ok().json()["data"].as_array().unwrap().len(), 1);
    }
    let cli = Cli::new();
    user_file(&cli, "jobs = \"4\"\n");
    cli.file("taskpawl.toml", "jobs = 0\n");
    assert_eq!(cli.run(&["list"]).code, Some(2), "it is the user's own");
}

#[test]
fn limits_of_runs_have_names_that_people_choose() {
    let cli = Cli::new();
    let content = "[run]\ntimeout = \"2h\"\nretry = { attempts = 3, delay = \"1s\" }\n[resources]\ngpu = 2\n[tools.exec]\nconcurrency = 1\n";
    cli.file("taskpawl.toml", content);
    for (key, value) in [
        ("run.timeout", "2h\n"),
        ("run.retry", "{\"attempts\":3,\"delay\":\"1s\"}\n"),
        ("resources.gpu", "2\n"),
        ("tools.exec.concurrency", "1\n"),
    ] {
        assert_eq!(cli.run(&["config", "get", key]).ok().stdout, value);
    }
    for (content, problem) in [
        ("[resources]\ngpu = -1\n", "line 2: `resources.gpu` cannot be `-1`, expected a number from 0"),
        ("[tools]\nexec = 3\n", "line 2: `tools.exec` cannot be `3`, expected a table such as"),
        (
            "[tools.exec]\nconcurrency = 0\n",
            "line 2: `tools.exec.concurrency` cannot be `0`, expected a number of at least 1",
        ),
        ("[tools.exec]\nspeed = 1\n", "line 2 has the unknown key `tools.exec.speed`"),
        (
            "[run]\nretry = 0\n",
            "line 2: `run.retry` cannot be `0`, expected a number of at least 1, or a table",
        ),
        ("[run]\ntimeout = \"soon\"\n", "line 2: `run.timeout` cannot be `soon`, expected a duration"),
        ("[run]\nretry.attempts = 0\n", "line 2: `run.retry` cannot be `"),
        (
            "[run]\ntimeuot = \"2h\"\n",
            "line 2 has the unknown key `run.timeuot`\nhint: did you mean `run.timeout`?",
        ),
        ("lease = 1979-05-27\n", "line 1: `lease` cannot be `1979-05-27`, expected a duration"),
        ("limit = nan\n", "line 1: `limit` cannot be `nan`, expected a number"),
        ("\n[tools.x]\nargv = [\"x\"]\ndescription = 1979-05-27\n", "line 4: `tools.x` contains a date"),
        ("[tools.exec]\nhosts = []\n", "line 1: `tools.exec` is a built-in tool"),
        // Fields by their order would be accepted by serde.
        ("sandbox = [\"off\"]\n", "line 1 has the unknown key `sandbox`"),
        ("run = []\n", "line 1 has the unknown key `run`"),
        ("[run]\nretry = [3]\n", "line 2: `run.retry` cannot be `[3]`"),
    ] {
        cli.file("taskpawl.toml", content);
        let run = cli.run(&["create", "x"]);
        assert!(run.code == Some(2) && run.stderr.contains(problem), "{run}");
    }
}

#[test]
fn a_project_narrows_the_hosts_of_the_user_and_adds_none() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // Accepts each connection and closes it, so that an allowed request fails with another error class than a blocked
    // one.
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let cli = Cli::new();
    let plan = format!("tasks: [{{id: get, call: {{http_request: {{url: \"http://127.0.0.1:{port}/\"}}}}}}]");
    cli.file("plan.yaml", &plan);
    cli.run(&["init"]).ok();
    let list = |host: &str| format!("[tools.http_request]\nhosts = [\"{host}\"]\n");
    for (user, project, class) in [
        (None, None, "blocked_address"),
        (None, Some("127.0.0.1"), "blocked_address"),
        (Some("127.0.0.1"), None, "http"),
        (Some("127.0.0.1"), Some("*"), "http"),
        (Some("127.0.0.1"), Some("*.example.org"), "blocked_address"),
    ] {
        user_file(&cli, &user.map(list).unwrap_or_default());
        cli.file("taskpawl.toml", &project.map(list).unwrap_or_default());
        cli.run(&["apply", "plan.yaml", "--fresh"]);
        cli.run(&["run-all-ready"]);
        let shown = cli.run(&["show", "get", "--json"]).ok().stdout;
        assert!(shown.contains(&format!("\"{class}\"")), "{user:?} {project:?}: {shown}");
    }
    insta::assert_snapshot!(cli.run(&["config", "get", "tools.http_request.hosts"]), @r#"
    $ taskpawl config get tools.http_request.hosts
    ["*.example.org"] of ["127.0.0.1"]
    "#);
    cli.file("taskpawl.toml", "[tools.http_request]\nhosts = [\"http://a.example/\"]\n");
    insta::assert_snapshot!(cli.run(&["create", "x"]), @r#"
    $ taskpawl create x
    ! error: [HOME]/work/taskpawl.toml line 2: `tools.http_request.hosts` cannot be `["http://a.example/"]`, expected a list such as ["api.example.com", "*.example.org", "127.0.0.1:8080"]
    ! hint: `tools.http_request.hosts` says which hosts `http_request` may reach; those of a project only narrow those of the user
    [exit 2]
    "#);
}

#[test]
fn a_key_is_set_in_its_file_and_all_else_stays() {
    let cli = Cli::new();
    user_file(&cli, "# mine\njobs = 4 # cores\n");
    insta::assert_snapshot!(cli.session(&[
        &["config", "set", "jobs", "8"],
        &["config", "set", "jobs", "8"],
        &["config", "set", "lease", "2h"],
        &["config", "set", "lease", "soon"],
        &["config", "set", "leese", "2h"],
        &["config", "set", "sandbox.mode", "strict", "--project"],
        &["config", "set", "actor", "ada", "--project"],
    ]));
    let text = |path: &str| fs::read_to_string(cli.path(path)).unwrap();
    assert_eq!(text(".config/taskpawl/config.toml"), "# mine\njobs = 8 # cores\nlease = \"2h\"\n");
    assert_eq!(text("work/taskpawl.toml"), "[sandbox]\nmode = \"strict\"\n");
}

#[test]
fn an_agent_does_not_set_what_it_may_do() {
    let cli = Cli::new().with("CLAUDECODE", "1");
    for line in [&["config", "set", "sandbox.net", "true"][..], &["config", "edit"]] {
        let refused = cli.run(line);
        assert_eq!(refused.code, Some(7), "{refused}");
    }
    assert!(!cli.path(".config/taskpawl/config.toml").exists());
}

#[test]
fn an_edited_file_is_written_only_if_it_is_valid() {
    let cli = Cli::new().at_a_terminal();
    user_file(&cli, "jobs = 4\n");
    let path = cli.path(".config/taskpawl/config.toml");
    let edit = |script: &str| {
        let (person, program) = crate::terminal::terminal();
        let mut command = cli.command(&cli.path("work"), &["config", "edit"]);
        command
            .env("EDITOR", script)
            .stdin(program.try_clone().unwrap())
            .stdout(program.try_clone().unwrap());
        let code = command.stderr(program).spawn().unwrap().wait().unwrap().code();
        drop(person);
        code
    };
    assert_eq!(edit("printf 'jobs = many\\n' >"), Some(2));
    assert_eq!(fs::read_to_string(&path).unwrap(), "jobs = 4\n", "the file is as it was");
    assert_eq!(fs::read_to_string(path.with_extension("draft.toml")).unwrap(), "jobs = many\n");
    assert_eq!(edit("/bin/sed -i s/many/6/"), Some(0));
    assert_eq!(fs::read_to_string(&path).unwrap(), "jobs = 6\n");
    assert!(!path.with_extension("draft.toml").exists());
}
