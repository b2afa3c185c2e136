//! Tests of the powers: each has a key in the policy, and the key takes effect.

use std::fs;

use taskpawl::tools::Power;

use crate::harness::{Cli, Run, may_decide};

/// A command that uses a power.
#[derive(Default)]
struct Use {
    args: &'static [&'static str],
    config: &'static str,
    /// Set for commands of coding agents.
    is_agent: bool,
}

const RUN: &str = "run-all-ready";

/// Returns a command that uses a power, which succeeds without a policy; `None` if the named test is about it.
fn use_of(power: Power) -> Option<Use> {
    let run = |args| Some(Use { args, ..Use::default() });
    match power {
        Power::Off => run(&[RUN, "--sandbox", "off"]),
        Power::Net => run(&[RUN, "--allow-net"]),
        Power::Paths => run(&[RUN, "--allow-read", "/usr/share"]),
        Power::Hosts => run(&[RUN, "--allow-host", "registry.test"]),
        Power::Ports => run(&[RUN, "--allow-port", "5432"]),
        Power::Agents => Some(Use { args: &[RUN, "--allow-port", "5432"], is_agent: true, ..Use::default() }),
        Power::Variables => {
            Some(Use { args: &[RUN], config: "[sandbox]\nenv = ['DEPLOY_STAGE']\n", ..Use::default() })
        }
        Power::Signals => run(&["signal", "go"]),
        Power::Mcp => run(&["mcp", "--allow", "sandboxed"]),
        Power::Include => run(&[RUN, "plan.yaml", "--report", "md=run.md", "--include", "output"]),
        Power::Otlp => Some(Use {
            args: &[RUN, "--otlp", "http://127.0.0.1:9"],
            config: "[trace]\ncollectors = ['http://127.0.0.1:9']\n",
            ..Use::default()
        }),
        Power::Planner => Some(Use {
            args: &["plan", "new", "x"],
            config: "[planner]\ncommand = ['/bin/echo', 'tasks: [{id: a, name: a, run: /bin/true}]']\n",
            ..Use::default()
        }),
        // Tests of their own: `allow::a_policy_keeps_remembered_grants_from_runs`, `kits::a_kit_is_for_people_and_needs_the_policy`,
        // `approve_always::some_questions_are_asked_each_time`, `trust_in_files_of_projects_can_be_forbidden`,
        // `trust_in_values_of_models_can_be_forbidden`, `serve::a_policy_keeps_approvals_from_the_page`,
        // `planner::changes::a_policy_lets_a_planner_retry_failed_calls_as_they_are_and_nothing_else`,
        // and `engine::a_policy_keeps_calls_on_this_machine`.
        Power::Remembered
        | Power::Sockets
        | Power::Kits
        | Power::Approvals
        | Power::Trust
        | Power::TrustInputs
        | Power::Page
        | Power::Retries
        | Power::Engine => None,
    }
}

#[test]
fn each_power_has_a_key_in_the_policy() {
    for power in Power::ALL {
        let Some(Use { args, config, is_agent }) = use_of(*power) else { continue };
        let cli = if is_agent { Cli::new().with("CLAUDECODE", "1") } else { Cli::new() }.with_programs();
        cli.file("plan.yaml", "tasks: [{id: a, run: 'true'}]\n");
        fs::create_dir_all(cli.path(".config/taskpawl")).unwrap();
        fs::write(cli.path(".config/taskpawl/config.toml"), config).unwrap();
        let run = |ruling: &str| -> Run {
            cli.policy(&format!("agents_may = ['port:5432']\n[powers]\n{power} = '{ruling}'\n"));
            cli.run(args)
        };
        run("allow").ok();
        let never = run("never");
        assert_eq!(never.code, Some(7), "{power} {never}");
        let said = if is_agent { "is for a person" } else { "forbids it" };
        assert!(never.stderr.contains(said), "{power} {never}");
        let ask = run("ask");
        assert_eq!(ask.code, Some(7), "{power} {ask}");
        assert!(may_decide() == ask.stderr.contains("is for a person"), "{power} {ask}");
    }
}

#[test]
fn all_powers_are_shown_with_the_place_that_rules_on_them() {
    let cli = Cli::new();
    let lines: Vec<String> = Power::ALL.iter().map(|power| format!("{power} = 'never'\n")).collect();
    cli.policy(&format!("[powers]\n{}", lines.concat()));
    let shown = cli.run(&["policy", "effective", "--json"]).ok().json()["data"]["powers"].clone();
    for (number, power) in Power::ALL.iter().enumerate() {
        let (entry, place) =
            (&shown[number], format!("policy.toml` line {} (`[powers] {power}`)", number + 2));
        assert_eq!(
            (entry["power"].as_str(), entry["ruling"].as_str()),
            (Some(power.as_str()), Some("never"))
        );
        assert!(entry["place"].as_str().unwrap().ends_with(&place), "{entry}");
    }
}

#[test]
fn trust_in_files_of_projects_can_be_forbidden() {
    if !may_decide() {
        return;
    }
    let cli = Cli::new().with_programs().at_a_terminal();
    cli.file("taskpawl.toml", "[tools.hello]\ndescription = \"Says hello\"\nargv = [\"echo\", \"hello\"]\n");
    cli.run(&["trust", "--yes"]).ok();
    cli.run(&["tools", "call", "hello"]).ok();
    cli.policy("[powers]\ntrust = 'never'\n");
    assert_ne!(cli.run(&["tools", "call", "hello"]).code, Some(0));
    assert_eq!(cli.run(&["trust", "--yes"]).code, Some(7));
    cli.run(&["trust", "--remove"]).ok();
}

#[test]
fn trust_in_values_of_models_can_be_forbidden() {
    if !may_decide() {
        return;
    }
    let plan = "name: p\ntasks:\n- {id: review}\n\
                - {id: t, needs: review, trustInputs: review, run: 'printf x > ${{ tasks.review.result.file }}'}\n";
    for (policy, code) in [("", 0), ("[powers]\ntrust_inputs = 'never'\n", 3)] {
        let cli = Cli::new().with_programs();
        cli.file("plan.yaml", plan);
        cli.policy(policy);
        let round = |file: &str| {
            cli.run(&["done", "review", "--result", &format!("{{\"file\": \"{file}\"}}"), "--actor", "bot"])
                .ok();
            cli.run(&["run-all-ready", "--quiet"])
        };
        cli.run(&["apply", "plan.yaml", "--quiet"]).ok();
        assert_eq!(round("one").code, Some(3));
        cli.by_person(&["approve", "t"]).ok();
        cli.run(&["run-all-ready", "--quiet"]).ok();
        cli.run(&["reopen", "review", "t", "--quiet"]).ok();
        // Trusted inputs may change, unless the policy has no such trust.
        let second = round("two");
        assert_eq!(second.code, Some(code), "{policy} {second}");
    }
}
