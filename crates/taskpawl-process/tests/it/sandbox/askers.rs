//! Refused access belongs to the call that asked for it, also while other calls run.

use taskpawl_fuzz::skip;
use taskpawl_process::{NetworkWall, Outcome, RefusedAccess};

use super::Home;

/// Runs `script` while another call of the same run waits for its end, and returns both ends.
async fn beside_another(home: &Home, script: &str) -> [Outcome; 2] {
    let asking = format!("until [ -e waits ]; do sleep 0.01; done; {script}; touch asked");
    let waiting =
        "touch waits; until [ -e asked ]; do sleep 0.01; done; echo 'it has an error of its own' >&2; exit 1";
    let [mut asking, waiting] = [asking.as_str(), waiting].map(|script| home.program(&["sh", "-c", script]));
    asking.output.stdout = home.bench.path("out/2.stdout");
    asking.output.stderr = home.bench.path("out/2.stderr");
    let (asked, waited) = tokio::join!(home.bench.run(&asking), home.bench.run(&waiting));
    for file in ["waits", "asked"] {
        std::fs::remove_file(home.bench.path("project").join(file)).unwrap();
    }
    [asked.unwrap(), waited.unwrap()]
}

async fn with_own_network() -> Option<Home> {
    let home = Home::new();
    if home.enforcement().await.network == NetworkWall::Namespace {
        return Some(home);
    }
    skip("a network namespace", "refused access by call", "the system provides none");
    None
}

#[tokio::test]
async fn a_name_that_one_call_asks_for_is_not_put_down_to_another() {
    let Some(home) = with_own_network().await else { return };
    let question = r"b'\1\2\1\0\0\1\0\0\0\0\0\0\6packet\4test\0\0\1\0\1'";
    let by_packet = format!(
        "python3 -c \"import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto({question}, ('127.64.255.53', 53)); s.recv(512)\""
    );
    let ways = [
        ("getent hosts other.test", "other.test"),
        // A grandchild whose parent has ended.
        ("(getent hosts orphan.test & wait; exit 0) & wait", "orphan.test"),
        ("env -i setsid -w getent hosts hidden.test", "hidden.test"),
        // Without a connected socket.
        (by_packet.as_str(), "packet.test"),
    ];
    for (script, name) in ways {
        let [asked, waited] = beside_another(&home, script).await;
        let host = RefusedAccess::Host { name: name.to_owned() };
        assert!(asked.refused.contains(&host), "{script}: {:?} {:?}", asked.refused, asked.stderr);
        assert_eq!(waited.refused, [], "{script}");
        assert_eq!((waited.code, waited.stderr.text.trim()), (1, "it has an error of its own"));
    }
}
