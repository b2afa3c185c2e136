//! Both sides of the protocol, and clients that send garbage.

use std::fmt::Debug;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use taskpawl_model::command::{Command, Refusal};
use taskpawl_model::task::{Actor, ActorKind, PlanAccess};
use taskpawl_model::value::{Key, RunId};
use taskpawl_model::view::{EventQuery, Query, View, ViewResult};

use super::*;
use crate::testing::{create, request};
use crate::{Location, Store, StoreError, open};

fn store_with(tasks: u32) -> Arc<dyn Store> {
    let store = open(&Location::Memory);
    let task = |number: u32| {
        let on = (number > 0).then(|| format!("t{}", number / 2));
        create(&format!("t{number}"), on.as_deref().as_slice())
    };
    for outcome in store.write((0..tasks).map(task).collect()).unwrap() {
        outcome.unwrap();
    }
    store
}

/// Serves reads of a store until the client disconnects. Returns the client.
fn served(store: Arc<dyn Store>) -> (Arc<dyn Store>, thread::JoinHandle<()>) {
    let (plan_socket, acceptor) = plan_socket().unwrap();
    let served = thread::spawn(move || {
        let channel = acceptor.offer().unwrap();
        let handshake = Handshake { access: PlanAccess::Read, task: "t0".into(), call: "c1".into() };
        while let Some(bytes) = channel.receive(MAX_REQUEST_BYTES, Patience::default()).unwrap() {
            let answer = match AccessRequest::read(&bytes).unwrap() {
                AccessRequest::Hello { .. } => AccessReply::Handshake(&handshake).to_bytes(),
                AccessRequest::Look => {
                    show(&*store, &channel, Patience::default()).unwrap();
                    continue;
                }
                AccessRequest::Revision => AccessReply::Revision(7).to_bytes(),
                AccessRequest::Add(_) | AccessRequest::Done | AccessRequest::View(_) => {
                    AccessReply::Failed("no").to_bytes()
                }
            };
            channel.send(&answer, Patience::default()).unwrap();
        }
    });
    (open(&Location::Call(plan_socket)), served)
}

/// Returns the results of all queries of a view, as text.
fn everything(view: &dyn View) -> ViewResult<Vec<String>> {
    fn text(value: impl Debug) -> String {
        format!("{value:?}")
    }
    let (mut nodes, mut edges, mut durations) = (Vec::new(), Vec::new(), Vec::new());
    view.each_node(&mut |node| nodes.push(node))?;
    view.each_dependency(&mut |task, on| edges.push((task, on)))?;
    view.each_duration(&mut |key, period, source| durations.push((key, period, source)))?;
    let latest = EventQuery { latest: true, limit: 1_500, ..EventQuery::default() };
    let some = EventQuery { actor: Some("ann".to_owned()), after: 3, limit: 1_200, ..EventQuery::default() };
    Ok(vec![
        text((view.key("t1")?, view.key("none")?, view.id(Key(1))?, view.id(Key(9_999))?)),
        text((view.ids_with_prefix("t1", 20)?, view.deleted_id("t1")?, view.next_key()?)),
        text((view.node(Key(2))?, view.task(Key(2))?, view.calls(Key(2))?, view.task(Key(9_999))?)),
        text((view.dependencies(Key(3))?, view.dependents(Key(1))?, view.subtasks(Key(1))?)),
        text((view.applied(Key(1))?, view.plan("p")?, view.plans()?, view.run(&RunId::from("r"))?)),
        text((view.runs(0)?, view.open_runs()?, view.find(&Query::default())?, view.leases(None)?)),
        text((view.leases(Some("ann"))?, view.running()?, nodes, edges, durations)),
        text((view.to_be_opened()?, view.counts()?, view.revision()?)),
        text((view.tools()?, view.ready_calling("log", 0)?, view.ready_calling("log", 2)?)),
        text((view.events(0, None, 0)?, view.events(5, None, 1_100)?, view.events(0, Some(Key(4)), 0)?)),
        text((view.find_events(&latest)?, view.find_events(&some)?)),
        text((
            view.find_events(&EventQuery::default())?,
            view.undoables(1, 3)?,
            view.last_undoable(Actor { kind: ActorKind::Program, name: "ann" })?,
        )),
        text(view.pruned_runs("r")?),
    ])
}

#[test]
fn a_remote_view_returns_the_same_data() {
    let store = store_with(2_500);
    let (remote, served) = served(Arc::clone(&store));
    assert_eq!(remote.view(everything).unwrap(), store.view(everything).unwrap());
    assert_eq!(remote.wait_change(3, Duration::ZERO).unwrap(), 7);
    drop(remote);
    served.join().unwrap();
}

#[test]
fn commands_that_are_no_additions_are_refused_before_sending() {
    // No server accepts connections.
    let (plan_socket, _keeper) = plan_socket().unwrap();
    let remote = open(&Location::Call(plan_socket));
    let command = Command::Cancel { ids: vec!["t0".to_owned()], reason: None };
    let outcome = remote.write(vec![request(command)]).unwrap().remove(0);
    let refusal = *outcome.unwrap_err();
    assert!(matches!(refusal, Refusal::BeyondAccess { access: None, .. }), "{refusal}");
}

#[test]
fn a_closed_listener_is_reported() {
    let (plan_socket, acceptor) = plan_socket().unwrap();
    let left = acceptor.offer().unwrap();
    drop((acceptor, left));
    let store = open(&Location::Call(plan_socket.clone()));
    for _ in 0..2 {
        let error = store.view(|view| view.revision()).unwrap_err();
        assert!(matches!(error, StoreError::CallOver), "{error}");
    }
    let beside = plan_socket.clone();
    assert_eq!(Location::Call(plan_socket), Location::Call(beside));
}

#[test]
fn a_read_ends_at_its_deadline_or_when_stopped() {
    let store = store_with(1);
    let (plan_socket, acceptor) = plan_socket().unwrap();
    let run_end = acceptor.offer().unwrap();
    let call_end = plan_socket.enter(Patience::default()).unwrap().unwrap();
    call_end.send(br#"{"view":"revision"}"#, Patience::default()).unwrap();
    let until = Some(Instant::now() + Duration::from_millis(20));
    let Err(Broken::Gone(error)) = show(&*store, &run_end, Patience { until, stop: None }) else {
        panic!("the read did not end")
    };
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    let (stopped, bell) = io::pipe().unwrap();
    drop(bell);
    let patience = Patience { until: None, stop: Some(std::os::fd::AsFd::as_fd(&stopped)) };
    let Err(Broken::Gone(error)) = show(&*store, &run_end, patience) else { panic!("the read did not end") };
    assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
}

/// Mixes the bits of a counter.
fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns a plausible request with some random bytes.
fn garbage(random: &mut u64) -> Vec<u8> {
    const WORDS: [&str; 12] = [
        r#"{"hello":{"version":1}}"#,
        r#""look""#,
        r#""done""#,
        r#""revision""#,
        r#"{"view":{"find":{"status":["todo"],"limit":3}}}"#,
        r#"{"view":{"events":{"after":18446744073709551615,"task":null,"limit":0}}}"#,
        r#"{"view":{"idsWithPrefix":["t",18446744073709551615]}}"#,
        r#"{"view":{"task":4294967295}}"#,
        r#"{"add":{"create":{"id":"x","spec":{"name":"x","timeout":"1h"},"calls":[{"spec":{"toolName":"log"}}]}}}"#,
        r#"{"add":{"join":[{"id":"a","needs":["b"],"subtasks":[{"id":"b"}],"when":"${{ params.x }}"}]}}"#,
        r#"{"add":{"addCall":{"id":"x","call":{"id":"c","spec":{"args":{"a":[1,null,{}]}}}}}}"#,
        r#"{"add":{"note":{"id":"x","text":"\ud83d\ude00"}}}"#,
    ];
    let mut bytes = WORDS[usize::try_from(splitmix(random) % 12).unwrap()].as_bytes().to_vec();
    for _ in 0..splitmix(random) % 4 {
        let at = usize::try_from(splitmix(random)).unwrap() % bytes.len().max(1);
        match splitmix(random) % 4 {
            0 => bytes.truncate(at),
            1 => bytes.insert(at.min(bytes.len()), b"[]{}\",:0-e\\\xff"[at % 12]),
            2 if !bytes.is_empty() => drop(bytes.remove(at)),
            _ => bytes.extend_from_within(at.min(bytes.len())..),
        }
    }
    bytes
}

#[test]
fn any_bytes_are_parsed_or_refused() {
    let (mut random, mut understood) = (7, 0);
    for _ in 0..100_000 {
        let Ok(ask) = AccessRequest::read(&garbage(&mut random)) else { continue };
        understood += 1;
        if let AccessRequest::Add(addition) = ask {
            // Parsing may fail: the receiver validates again.
            let _ = addition.into_mutation();
        }
    }
    assert!((10_000..90_000).contains(&understood), "{understood}");
}

#[test]
fn no_request_during_a_read_changes_the_store() {
    let store = store_with(20);
    let before = store.view(everything).unwrap();
    let mut random = 1;
    for _ in 0..2_000 {
        let (plan_socket, acceptor) = plan_socket().unwrap();
        let run_end = acceptor.offer().unwrap();
        let call_end = plan_socket.enter(Patience::default()).unwrap().unwrap();
        for _ in 0..3 {
            call_end.send(&garbage(&mut random), Patience::default()).unwrap();
        }
        drop(call_end);
        // The read may end in any way.
        let _ = show(&*store, &run_end, Patience::default());
    }
    assert_eq!(store.view(everything).unwrap(), before);
}

#[test]
fn a_frame_longer_than_the_limit_is_refused() {
    let (plan_socket, acceptor) = plan_socket().unwrap();
    let run_end = acceptor.offer().unwrap();
    let call_end = plan_socket.enter(Patience::default()).unwrap().unwrap();
    let bytes = vec![b'x'; 300_000];
    let sender = thread::spawn(move || {
        call_end.send(&bytes, Patience::default()).unwrap();
        call_end.send(&[1; 11], Patience::default()).unwrap();
    });
    assert_eq!(run_end.receive(300_000, Patience::default()).unwrap().unwrap().len(), 300_000);
    let error = run_end.receive(10, Patience::default()).unwrap_err();
    assert_eq!(error.to_string(), "a message of 11 bytes exceeds the limit");
    sender.join().unwrap();
}

#[test]
fn a_request_with_a_duplicate_key_or_an_inexact_number_is_refused() {
    let read = |text: &str| AccessRequest::read(text.as_bytes()).map(drop);
    assert!(read(r#"{"add": {"join": {"tasks": [{"id": "a", "priority": 1}]}}}"#).is_ok());
    for wrong in [
        r#"{"add": {"join": {"tasks": [{"id": "a", "id": "b"}]}}}"#,
        r#"{"add": {"join": {"tasks": [{"id": "a", "metadata": {"n": 123456789012345678901234567890}}]}}}"#,
    ] {
        let problem = read(wrong).unwrap_err();
        assert!(problem.starts_with("invalid request: "), "{wrong}: {problem}");
    }
}
