//! Scheduled plans on the command line, and a server that runs them.

use std::fs;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::harness::Cli;

/// A server, which is killed on drop.
struct Server(Child);

impl Server {
    fn start(cli: &Cli, options: &[&str]) -> Self {
        let args: Vec<&str> = ["serve", "--run"].iter().chain(options).copied().collect();
        let mut command = cli.command(&cli.path("work"), &args);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let end = std::time::Instant::now() + std::time::Duration::from_mins(1);
    while !is_so() {
        assert!(std::time::Instant::now() < end, "{what}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

fn schedules(cli: &Cli) -> Value {
    cli.run(&["schedules", "--json"]).ok().json()["data"].clone()
}

#[test]
fn schedules_are_added_listed_and_removed() {
    let cli = Cli::new().with_programs();
    cli.file("plan.yaml", "name: nightly\nschedule: {cron: 30 2 * * *, timezone: Europe/Berlin}\ntasks: [{id: a, run: 'true'}]\n");
    let added = cli.run(&["schedules", "add", "plan.yaml"]).ok();
    for text in [
        "nightly  30 2 * * * Europe/Berlin",
        "next 2026-01-03 02:30 CET",
        "clocks change: 2026-03-29 02:30 does not exist; runs at 2026-03-29 03:00 CEST",
        "clocks change: 2026-10-25 02:30 comes twice; runs at 2026-10-25 02:30 CEST",
    ] {
        assert!(added.stdout.contains(text), "{text}: {added}");
    }
    assert!(added.stderr.contains("serve --run"), "{added}");
    let listed = schedules(&cli);
    assert_eq!(listed[0]["next"][0]["instance"], "nightly-20260103T0230", "{listed}");
    assert_eq!((&listed[0]["fileChanged"], &listed[0]["served"]), (&json!(false), &json!(false)));
    cli.file("plan.yaml", "name: nightly\nschedule: 0 4 * * *\ntasks: [{id: a, run: 'false'}]\n");
    assert_eq!(schedules(&cli)[0]["fileChanged"], true);
    cli.run(&["schedules", "add", "plan.yaml"]).ok();
    let listed = schedules(&cli);
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["cron"]), (1, &json!("0 4 * * *")));
    assert_eq!(cli.run(&["schedules", "remove", "other"]).code, Some(2));
    cli.run(&["schedules", "remove", "nightly"]).ok();
    assert_eq!(schedules(&cli), json!([]));
}

#[test]
fn wrong_schedules_are_refused_with_their_place_and_a_remedy() {
    let cli = Cli::new().with_programs();
    let cases = [
        ("61 3 * * *", "plan.yaml:1:11", "is no cron expression", "as in `0 3 * * *`"),
        (
            "{cron: 0 3 * * *, timezone: Berlin}",
            "plan.yaml:1:39",
            "`Berlin` is no time zone",
            "Europe/Berlin",
        ),
        ("0 3 31 2 *", "plan.yaml:1:11", "never comes", "check its day"),
    ];
    for (schedule, place, why, remedy) in cases {
        cli.file("plan.yaml", &format!("schedule: {schedule}\ntasks: []\n"));
        for command in
            [&["plan", "check", "plan.yaml"][..], &["schedules", "add", "plan.yaml"], &["apply", "plan.yaml"]]
        {
            let refused = cli.run(command);
            assert_eq!(refused.code, Some(7), "{refused}");
            let text = format!("{}{}", refused.stdout, refused.stderr);
            for part in [place, why, remedy] {
                assert!(text.contains(part), "{part}: {refused}");
            }
        }
    }
    cli.file("plan.yaml", "tasks: []\n");
    assert_eq!(cli.run(&["schedules", "add", "plan.yaml"]).code, Some(2), "a plan without a schedule");
    let by_agent = cli.run(&["--actor", "agent:x", "schedules", "add", "plan.yaml"]);
    assert_eq!(by_agent.code, Some(7), "{by_agent}");
}

/// A program that adds the messages that it gets to a file.
fn listener(cli: &Cli) -> Vec<Value> {
    let text = fs::read_to_string(cli.path("told")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_server_runs_missed_times_once_and_reports_each_night_once() {
    let mut cli = Cli::new().with_programs();
    let told = cli.path("told");
    cli.file("tell.sh", &format!("cat >> {}", told.display()));
    let script = cli.path("work/tell.sh");
    cli.run(&["config", "set", "run.notify", &format!("[\"sh\", \"{}\"]", script.display())]).ok();
    cli.file("good.yaml", "name: good\nschedule: 0 3 * * *\ntasks: [{id: a, run: echo x > good.txt}]\n");
    cli.file("bad.yaml", "name: bad\nschedule: 0 3 * * *\ntasks: [{id: a, run: exit 3}]\n");
    for file in ["good.yaml", "bad.yaml"] {
        cli.run(&["schedules", "add", file]).ok();
    }
    // They were added at a time of the past; the server has the time of today.
    cli = cli.with_clock();
    let beat = cli.path("beat");
    let server = Server::start(&cli, &["--heartbeat", beat.to_str().unwrap()]);
    wait_until("three messages", || listener(&cli).len() >= 3);
    wait_until("the good plan ran", || schedules(&cli)[0]["last"]["state"] == "done");
    let listed = schedules(&cli);
    assert_eq!(listed[0]["served"], true);
    assert_eq!(listed[1]["last"]["state"], "failed", "{listed}");
    assert!(cli.path("work/good.txt").exists() && beat.exists());
    // Another server takes over where this one was killed, and repeats nothing.
    drop(server);
    let _second = Server::start(&cli, &[]);
    wait_until("the second server", || schedules(&cli)[0]["served"] == true);
    cli.run(&["create", "x", "--id", "x", "--run", "true"]).ok();
    wait_until("a run of the second server", || {
        cli.run(&["show", "x", "--json"]).ok().json()["data"]["status"] == "done"
    });
    wait_until("the end of that run", || listener(&cli).iter().any(|one| one["event"] == "finished"));
    let messages = listener(&cli);
    let mut words: Vec<String> = messages
        .iter()
        .map(|one| {
            format!("{} {}", one["event"].as_str().unwrap(), one["schedule"].as_str().unwrap_or_default())
        })
        .collect();
    words.sort();
    words.dedup_by(|one, other| one == "finished " && other == "finished ");
    assert_eq!(words, ["failed bad", "finished ", "missed bad", "missed good"], "{messages:?}");
}

#[test]
fn the_nightly_example_waits_for_a_person() {
    let cli = Cli::new().with_programs();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/nightly");
    for name in ["plan.yaml", "notes.txt"] {
        cli.file(name, &fs::read_to_string(format!("{example}/{name}")).unwrap());
    }
    cli.run(&["plan", "check", "plan.yaml"]).ok();
    cli.run(&["schedules", "add", "plan.yaml"]).ok();
    let cli = cli.with_clock();
    let _server = Server::start(&cli, &[]);
    wait_until("the question", || schedules(&cli)[0]["last"]["state"] == "waiting");
    let instance = schedules(&cli)[0]["last"]["instance"].as_str().unwrap().to_owned();
    let publish = format!("{instance}.publish");
    assert_eq!(cli.run(&["show", &publish, "--json"]).ok().json()["data"]["status"], "blocked");
    if crate::harness::may_decide() {
        cli.by_person(&["approve", &publish]).ok();
        wait_until("the end", || schedules(&cli)[0]["last"]["state"] == "done");
        assert_eq!(fs::read_to_string(cli.path("work/published.txt")).unwrap().trim(), "3");
    }
}
