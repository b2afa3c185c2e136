use super::*;

/// A token for the signal `a`, and one for another.
pub(super) fn tokens() -> StoredTokens<Scope> {
    StoredTokens(Arc::new(|hash: &[u8; 32]| {
        let names = [("for-the-signal", "a"), ("for-another-signal", "b")];
        let found = names.into_iter().find(|(token, _)| *hash == token_hash(token));
        found.map(|(_, name)| Scope::Signal(name.to_owned()))
    }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_for_a_signal_ends_the_wait_for_it_and_does_nothing_else() {
    let plan = "tasks: [{id: x, call: {wait: {signal: a}}}, {id: y, call: {wait: {signal: b}}}]";
    let site = Site::open_with(plan, PageOptions::default(), Some(tokens())).await;
    site.plans.run().await.unwrap();
    let send = async |path: &str, token: &str, body: &str| {
        let auth = format!("{HOST}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json");
        let (status, _, body) = site.send(&format!("POST {path} HTTP/1.1{auth}"), body).await;
        (status, serde_json::from_str::<Value>(&body).unwrap())
    };
    let path = "/api/v1/signals/a";
    assert_eq!(send(path, "for-another-signal", "").await.0, 403);
    assert_eq!(send("/api/v1/signals/b", "for-the-signal", "").await.0, 403);
    for wrong in ["[]", "{\"dat\": 1}", "{\"to\": 3}", "{"] {
        assert_eq!(send(path, "for-the-signal", wrong).await.0, 400, "{wrong}");
    }
    assert_eq!(send(path, "for-the-signal", "{\"to\": \"unknown\"}").await.0, 404);
    let (status, answer) = send(path, "for-the-signal", "{\"data\": {\"build\": 7}}").await;
    assert_eq!((status, &answer["takenBy"]), (200, &json!("x")), "{answer}");
    let task = site.plans.get_task("x").await.unwrap();
    assert_eq!(
        (task.status, &task.metadata.tool_calls[0].result),
        (Status::Done, &Some(json!({"build": 7})))
    );
    let (status, kept) = send(path, "for-the-signal", "").await;
    assert_eq!((status, &kept["takenBy"]), (200, &Value::Null), "no second task waits for it");
    let kept = site.plans.manager().signals(Some("a")).unwrap();
    let (actor, kind) = (kept[0].actor.clone(), kept[0].kind.to_string());
    assert!(actor.starts_with("token:") && kind == "program", "{actor} {kind}");
    site.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_a_policy_leaves_signals_to_people_the_page_sends_none() {
    let options = PageOptions { refuses_signals: true, ..PageOptions::default() };
    let site = Site::open_with("", options, Some(tokens())).await;
    assert_eq!(site.post("/api/v1/signals/a", &json!({})).await.0, 403);
    let made = format!("POST /api/v1/signals/a HTTP/1.1{HOST}\r\nAuthorization: Bearer for-the-signal");
    let (status, ..) = site.send(&format!("{made}\r\nContent-Type: application/json"), "{}").await;
    assert_eq!(status, 200, "a person made this token");
    site.close().await;
}
