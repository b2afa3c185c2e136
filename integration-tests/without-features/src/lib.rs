//! Tests of the library without its features, but for `macros`: the smallest embedding runs, and the parts that are left out are refused
//! with the feature that brings them.

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use serde_json::json;
    use taskpawl::model::plan::parse_plan;
    use taskpawl::prelude::*;
    use taskpawl::tools::{LayerKind, Policy, Programs, SpawnError, Supervision, probe};

    /// Doubles a number.
    #[tool(read_only)]
    async fn double(number: i64) -> Result<i64, ToolError> {
        Ok(number * 2)
    }

    fn plans(store: &str) -> Taskpawl {
        Taskpawl::builder(store).tool(double).open().unwrap()
    }

    #[tokio::test]
    async fn a_tool_of_the_host_runs_from_a_plan_in_json() {
        let plans = plans(":memory:");
        let plan =
            json!({"name": "example", "tasks": [{"id": "answer", "call": {"double": {"number": 21}}}]});
        plans.apply_text(&plan.to_string(), "example").await.unwrap();
        plans.run().await.unwrap();
        assert_eq!(plans.result::<i64>("answer").await.unwrap(), 42);
    }

    #[test]
    fn a_plan_in_yaml_is_refused_with_its_feature() {
        let refused = parse_plan("tasks: [{id: a}]").unwrap_err();
        let hint = refused.errors()[0].hint.as_ref().unwrap().to_string();
        assert!(hint.contains("feature `yaml`"), "{hint}");
    }

    #[test]
    fn a_policy_file_is_refused_with_its_feature_and_never_ignored() {
        let refused = Policy::parse(&[(LayerKind::Ceiling, "")]).unwrap_err();
        assert!(refused.hint().unwrap().contains("feature `policy-files`"), "{refused}");
    }

    #[tokio::test]
    async fn a_program_is_refused_with_its_feature() {
        let refused = probe(&Supervision::default(), &std::sync::Arc::default()).unwrap_err();
        assert!(matches!(refused, SpawnError::NotBuilt), "{refused}");
        assert!(Programs::new(Supervision::default()).close_within(Duration::ZERO));
        let plan = json!({"name": "p", "tasks": [{"id": "a", "run": "true"}]});
        let faults = plans(":memory:").check(plan.to_string().as_str()).await.unwrap_err().to_string();
        assert!(faults.contains("shell"), "there is no tool for it: {faults}");
    }

    #[tokio::test]
    async fn a_database_is_refused() {
        let refused = plans("/nonexistent/tasks.db").apply_text(r#"{"tasks": [{"id": "a"}]}"#, "p").await;
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("is a SQLite store, and this program is built without them"), "{refused}");
    }

    /// Resident memory of this process, in KiB.
    fn memory() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// A release build has the strict bound: `TASKPAWL_HARNESS=full`, on a machine that does nothing else.
    #[tokio::test]
    async fn an_idle_engine_is_small_and_a_run_of_one_task_is_quick() {
        let before = memory();
        let engines: Vec<Taskpawl> = (0..100).map(|_| plans(":memory:")).collect();
        let kib = (memory() - before) / engines.len() as u64;
        let mut times = Vec::new();
        for engine in engines.iter().cycle().take(2_000) {
            let begin = Instant::now();
            let id = format!("t{}", times.len());
            engine.apply(Plan::new(&id).task(&id, |task| task.call(double::with(21)))).await.unwrap();
            engine.run().await.unwrap();
            times.push(begin.elapsed());
        }
        times.sort();
        let (median, p99) = (times[1_000], times[1_980]);
        println!("{kib} KiB an idle engine; one task planned and run in {median:?}, p99 {p99:?}");
        let is_full = std::env::var("TASKPAWL_HARNESS").is_ok_and(|harness| harness == "full");
        let most = Duration::from_millis(if is_full { 3 } else { 300 });
        assert!(kib <= 3 << 10 && p99 <= most);
    }
}
