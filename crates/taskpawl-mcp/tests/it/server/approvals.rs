//! Approvals by elicitation, and runs as tasks of the protocol.

use std::sync::{Arc, Mutex};

use rmcp::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CancelTaskRequest, ClientCapabilities,
    ClientConfig, ClientRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData,
    GetTaskParams, GetTaskRequest, GetTaskResult, Implementation, ProtocolVersion, ServerResult, TaskPayload,
    TaskStatus,
};
use rmcp::service::{RequestContext, RoleClient};
use serde_json::{Value, json};
use taskpawl_mcp::{McpServer, ServerOptions};
use tokio::sync::Notify;

use super::support::{Client, ERAS, Ears, Era, Scene, connect, connect_as};

/// A client whose person answers all questions in the same way.
#[derive(Debug, Clone)]
struct Person {
    answer: Value,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Person {
    fn who_says(answer: Value) -> Self {
        Self { answer, asked: Arc::default() }
    }
}

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_elicitation().build();
        let mut config = ClientConfig::new(capabilities, Implementation::new("test", "1"));
        config.protocol_version = ProtocolVersion::V_2025_11_25;
        config
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, .. } = request else {
            panic!("{request:?}")
        };
        self.asked.lock().unwrap().push(message);
        Ok(if self.answer.is_null() {
            ElicitResult::new(ElicitationAction::Decline)
        } else {
            ElicitResult::new(ElicitationAction::Accept).with_content(self.answer.clone())
        })
    }
}

fn asking(scene: &Scene) -> McpServer {
    let options = ServerOptions { approve_elicited: true, ..ServerOptions::default() };
    McpServer::new(scene.plans(), options).unwrap()
}

async fn write_plan<H: ClientHandler>(client: &Client<H>) {
    let call = json!({"write_file": {"path": "a.txt", "content": "x"}});
    client
        .call("plan_write", json!({"plan": {"tasks": [{"id": "a", "name": "Write it", "call": call}]}}))
        .await;
}

#[tokio::test]
async fn a_person_at_the_client_decides_in_both_eras() {
    for era in ERAS {
        for (answer, counts) in [
            (json!({"approve": true}), json!({"done": 1})),
            (json!({"approve": false}), json!({"cancelled": 1})),
            (Value::Null, json!({"cancelled": 1})),
        ] {
            let (scene, person) = (Scene::new(), Person::who_says(answer.clone()));
            let client = connect_as(&asking(&scene), era, person.clone()).await;
            write_plan(&client).await;
            let run = client.run(json!({})).await;
            assert_eq!(run["counts"], counts, "{era:?} {answer} {run}");
            assert_eq!(scene.file("a.txt").exists(), answer["approve"] == true);
            let asked = person.asked.lock().unwrap().clone();
            assert_eq!(asked.len(), 1, "{asked:?}");
            assert!(
                asked[0].contains("write_file {\"content\":\"x\",\"path\":\"a.txt\"}")
                    || asked[0].contains("write_file {\"path\":\"a.txt\",\"content\":\"x\"}"),
                "{asked:?}"
            );
        }
    }
}

#[tokio::test]
async fn nobody_is_asked_unless_the_server_was_started_so() {
    let (scene, person) = (Scene::new(), Person::who_says(json!({"approve": true})));
    let client = connect_as(&scene.server(), Era::Stateless, person.clone()).await;
    write_plan(&client).await;
    let run = client.run(json!({})).await;
    assert_eq!((&run["exit"], person.asked.lock().unwrap().len()), (&json!(3), 0));
    // For a client that cannot ask, the question is left to the command line.
    let client = connect(&asking(&scene), Era::Stateless).await;
    assert_eq!(client.run(json!({})).await["exit"], 3);
    assert!(!scene.file("a.txt").exists());
}

fn knows_tasks() -> Ears {
    Ears { capabilities: ClientCapabilities::builder().enable_tasks().build(), ..Ears::default() }
}

async fn start(client: &Client) -> String {
    let params = CallToolRequestParams::new("run_ready").with_arguments(serde_json::Map::new());
    let CallToolResponse::Task(created) = client.running.call_tool_once(params).await.unwrap() else {
        panic!("no task")
    };
    assert_eq!(created.task.status, TaskStatus::Working);
    created.task.task_id
}

async fn get(client: &Client, id: &str) -> Result<GetTaskResult, rmcp::ServiceError> {
    let request = GetTaskRequest::new(GetTaskParams::new(id));
    let answer = client.running.send_request(ClientRequest::GetTaskRequest(request)).await?;
    let ServerResult::GetTaskResult(result) = answer else { panic!("{answer:?}") };
    Ok(result)
}

async fn ended(client: &Client, id: &str) -> GetTaskResult {
    loop {
        let seen = get(client, id).await.unwrap();
        if seen.task.status().is_terminal() {
            return seen;
        }
        client.raw("run_ready", json!({"run_id": id, "wait_s": 45})).await;
    }
}

#[tokio::test]
async fn a_run_is_a_task_that_is_found_after_the_server_is_gone() {
    let scene = Scene::new();
    let client = connect_as(&scene.server(), Era::Stateless, knows_tasks()).await;
    client
        .call("plan_write", json!({"plan": {"tasks": [{"id": "a", "call": {"log": {"message": "x"}}}]}}))
        .await;
    let id = start(&client).await;
    let seen = ended(&client, &id).await;
    let TaskPayload::Completed { result } = &seen.task.payload else { panic!("{seen:?}") };
    assert_eq!(result["structuredContent"]["counts"], json!({"done": 1}));
    let other = connect_as(&scene.server(), Era::Stateless, knows_tasks()).await;
    assert_eq!(get(&other, &id).await.unwrap().task, seen.task);
    get(&other, "none").await.unwrap_err();
}

#[tokio::test]
async fn a_task_is_cancelled() {
    let scene = Scene::new();
    let server = scene.server();
    let client = connect_as(&server, Era::Stateless, knows_tasks()).await;
    let plan = json!({"plan": {"tasks": [{"id": "slow", "call": {"sleep": {"duration": "10m"}}, "timeout": "20m"}]}});
    client.call("plan_write", plan).await;
    let id = start(&client).await;
    for _ in 0..2 {
        let request = CancelTaskRequest::new(CancelTaskParams::new(id.clone()));
        client.running.send_request(ClientRequest::CancelTaskRequest(request)).await.unwrap();
    }
    assert_eq!(ended(&client, &id).await.task.status(), TaskStatus::Cancelled);
    server.wait_for_runs().await;
}

#[tokio::test]
async fn a_program_that_a_client_writes_into_a_plan_is_named_and_does_not_run() {
    let scene = Scene::new();
    let client = connect(&scene.server(), Era::Stateless).await;
    let pwn = scene.dir.path().join("project/pwn.txt");
    let notify = json!(["sh", "-c", format!("id > {}", pwn.display())]);
    let tasks = json!([{"id": "x", "call": {"log": {"message": "x"}}}]);
    let written =
        client.call("plan_write", json!({"name": "n", "plan": {"notify": notify, "tasks": tasks}})).await;
    let written = format!("{written:?}");
    assert!(written.contains("`notify` is kept and not run"), "{written}");
    let merged = json!({"name": "n", "merge": true, "plan": {"notify": ["sh", "-c", "true"], "tasks": []}});
    let merged = format!("{:?}", client.call("plan_write", merged).await);
    assert!(merged.contains("changedFields") && merged.contains("`notify` is kept and not run"), "{merged}");
    client.call("run_ready", json!({})).await;
    assert!(!pwn.exists());
}

/// A client whose person leaves every form open until `answer` is notified.
#[derive(Debug, Clone)]
struct Hesitating {
    asked: Arc<Mutex<Vec<String>>>,
    closed: Arc<Notify>,
    answer: Arc<Notify>,
}

impl ClientHandler for Hesitating {
    fn get_info(&self) -> ClientConfig {
        Person::who_says(Value::Null).get_info()
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.asked.lock().unwrap().push(format!("{request:?}"));
        tokio::select! {
            () = self.answer.notified() => {}
            () = context.ct.cancelled() => self.closed.notify_one(),
        }
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({"approve": true})))
    }
}

#[tokio::test]
async fn who_polls_need_not_wait_for_the_person() {
    for is_cancelled in [false, true] {
        let scene = Scene::new();
        let person = Hesitating { asked: Arc::default(), closed: Arc::default(), answer: Arc::default() };
        let server = asking(&scene);
        let client = connect_as(&server, Era::Handshake, person.clone()).await;
        write_plan(&client).await;
        let run = client.call("run_ready", json!({"wait_s": 1})).await["run_id"].clone();
        while person.asked.lock().unwrap().is_empty() {
            client.call("run_ready", json!({"run_id": run, "wait_s": 1})).await;
        }
        // Each of these calls answers although the form is open, and none opens another form.
        for poll in [json!({"run_id": run}), json!({"run_id": run, "wait_s": 1}), json!({"run_id": run})] {
            let seen = client.call("run_ready", poll).await;
            assert_eq!(
                (&seen["state"], seen["asks"].as_array().unwrap().len()),
                (&json!("running"), 1),
                "{seen}"
            );
            assert!(!seen.to_string().contains("askPersonToRun"), "{seen}");
        }
        assert_eq!(person.asked.lock().unwrap().len(), 1);
        if is_cancelled {
            client.call("run_ready", json!({"run_id": run, "cancel": true})).await;
            person.closed.notified().await;
        } else {
            person.answer.notify_one();
        }
        let mut seen = client.call("run_ready", json!({"run_id": run, "wait_s": 45})).await;
        while seen["state"] == "running" {
            seen = client.call("run_ready", json!({"run_id": run, "wait_s": 45})).await;
        }
        assert_eq!(scene.file("a.txt").exists(), !is_cancelled, "{seen}");
        assert_eq!(person.asked.lock().unwrap().len(), 1);
        server.wait_for_runs().await;
    }
}
