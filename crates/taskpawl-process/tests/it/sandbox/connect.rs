//! The broker of connections.

use std::io;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use taskpawl_fuzz::skip;
use taskpawl_process::{Network, NetworkWall, RefusedAccess};

use super::Home;

/// A server of this machine, outside of the sandbox.
struct Outside(Arc<AtomicUsize>);

impl Outside {
    fn at(path: &std::path::Path) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let count = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&count);
        std::thread::spawn(move || {
            listener.incoming().filter_map(io::Result::ok).for_each(|_| {
                counted.fetch_add(1, Ordering::Relaxed);
            });
        });
        Self(count)
    }

    fn connections(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

pub(super) async fn with_broker(network: Network) -> Option<Home> {
    let mut home = Home::new();
    home.profile.network = network;
    let enforcement = home.enforcement().await;
    let has = enforcement.mounts && enforcement.network != NetworkWall::Filter;
    let has = has && !enforcement.gaps.iter().any(|gap| gap.contains("not made by the supervisor"));
    if !has {
        skip("the broker of connections", "sockets of other programs", format!("{:?}", enforcement.gaps));
    }
    has.then_some(home)
}

/// Python with a server at an address, and a client in a child.
fn served(address: &str, kind: &str) -> String {
    format!(
        r#"python3 -c "
import os, socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_{kind}); s.bind({address}); s.listen()
if os.fork() == 0:
    c = socket.socket(socket.AF_UNIX, socket.SOCK_{kind}); c.connect({address}); c.send(b'hello'); os._exit(0)
print(s.accept()[0].recv(9).decode())""#
    )
}

#[tokio::test]
async fn programs_reach_their_own_sockets() {
    for network in [Network::None, Network::Full] {
        let Some(home) = with_broker(network).await else { return };
        let name = format!("'\\0taskpawl-own-{}-{network:?}'", std::process::id());
        let deep = "os.path.abspath('deep/socket')";
        let _ = home.shell("mkdir -p deep; ln -s deep link").await;
        for address in ["'relative'", deep, "'link/linked'", "'/proc/self/cwd/by-link'", &name] {
            for kind in ["STREAM", "SEQPACKET"] {
                let script = format!("rm -f relative by-link deep/*; {}", served(address, kind));
                let outcome = home.shell(&script).await;
                let [out, err] = [outcome.stdout.text, outcome.stderr.text];
                assert_eq!((out.trim(), err.as_str()), ("hello", ""), "{address} {kind}");
            }
        }
        // A left-behind file is refused as by the kernel, a missing one as well.
        let said = home
            .shell("curl -sS --unix-socket relative http://x; curl -sS --unix-socket none http://x")
            .await
            .stderr
            .text;
        assert!(said.lines().count() == 2 && said.contains("onnect"), "{said}");
    }
}

#[tokio::test]
async fn sockets_that_appear_during_the_run_are_out_of_reach_and_recorded() {
    for network in [Network::None, Network::Full] {
        let Some(mut home) = with_broker(network).await else { return };
        std::fs::create_dir(home.bench.path("opened")).unwrap();
        home.profile.write.push(home.bench.path("opened"));
        // The sandbox is set up before the sockets are there.
        home.works("read ~/other/file").await;
        for place in ["project", "opened", "project/.git"] {
            let path = home.bench.path(place).join("late");
            let outside = Outside::at(&path);
            home.fails(&format!("unix ~/{place}/late")).await;
            let outcome = home
                .shell(&format!(
                    "cd '{}' && ln -sf late other && curl -sS --unix-socket other http://x",
                    home.bench.path(place).display()
                ))
                .await;
            assert!(outcome.stderr.text.contains("onnect"), "{:?}", outcome.stderr);
            let other = home.bench.path(place).join("other");
            assert_eq!(outcome.refused, [RefusedAccess::Socket { path: other }], "{place}");
            assert_eq!(outside.connections(), 0, "{place} {network:?}");
        }
        // A socket of which the profile names the file is granted, whatever is done to its name.
        let granted = home.bench.path("granted");
        let outside = Outside::at(&granted);
        home.profile.write.push(granted);
        home.works("unix ~/granted").await;
        let last = || outside.connections() == 1;
        crate::support::until("the connection is accepted", last).await;
    }
}

#[tokio::test]
async fn datagrams_leave_by_no_socket() {
    let Some(home) = with_broker(Network::None).await else { return };
    for kind in ["DGRAM", "RAW"] {
        for make in [
            "socket.socket(socket.AF_UNIX, socket.SOCK_KIND)",
            "socket.socketpair(socket.AF_UNIX, socket.SOCK_KIND | socket.SOCK_CLOEXEC)",
        ] {
            let make = make.replace("KIND", kind);
            let outcome = home.shell(&format!("python3 -c \"import socket; {make}\"")).await;
            assert!(outcome.stderr.text.contains("Operation not permitted"), "{make}: {:?}", outcome.stderr);
        }
    }
    assert_eq!(home.shell("python3 -c \"import socket; socket.socketpair()\"").await.code, 0);
}

/// Returns the connections that a race has made outside.
async fn raced(home: &Home, descriptor: bool) -> usize {
    let outside = Outside::at(&home.bench.path("project/outside"));
    let attempt = if descriptor {
        "race-descriptor ~/project/outside".to_owned()
    } else {
        "race-address ~/project/inside ~/project/outside".to_owned()
    };
    let connected = home.works(&attempt).await;
    assert!(descriptor || connected != "0", "some of them reach the own socket");
    std::fs::remove_file(home.bench.path("project/outside")).unwrap();
    outside.connections()
}

#[tokio::test]
async fn an_address_or_a_descriptor_that_is_replaced_leads_nowhere() {
    for network in [Network::None, Network::Full] {
        let Some(home) = with_broker(network).await else { return };
        home.works("read ~/other/file").await;
        assert_eq!((raced(&home, false).await, raced(&home, true).await), (0, 0), "{network:?}");
    }
}

/// Tells the started test process that the broker lets programs connect after its decision.
#[cfg(feature = "faults")]
const CHECKED: &str = "TASKPAWL_PROCESS_TEST_CHECKED_CONNECT";

#[cfg(feature = "faults")]
#[tokio::test]
async fn races_without_the_broker() {
    if std::env::var_os(CHECKED).is_none() {
        return;
    }
    taskpawl_process::faults::enable(taskpawl_process::faults::Fault::CheckedConnect);
    let Some(home) = with_broker(Network::None).await else { return };
    home.works("read ~/other/file").await;
    let (address, descriptor) = (raced(&home, false).await, raced(&home, true).await);
    println!("RACED {address} {descriptor}");
}

/// If the decision were followed by the program's own call, both races would be lost.
#[cfg(feature = "faults")]
#[test]
fn control_a_check_before_the_call_loses_both_races() {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "sandbox::connect::races_without_the_broker", "--nocapture"]).env(CHECKED, "1");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let Some(counts) = text.lines().find_map(|line| line.split_once("RACED ")).map(|(_, counts)| counts)
    else {
        return;
    };
    let counts: Vec<usize> = counts.split(' ').map(|count| count.parse().unwrap()).collect();
    assert!(counts[0] > 0 && counts[1] > 0, "{counts:?}");
}

#[tokio::test]
async fn a_connection_takes_little_time() {
    let Some(home) = with_broker(Network::None).await else { return };
    let within = home.works("time-connect ~/project/socket").await;
    // Far above the 50 µs of a quiet machine, and far below what a broken broker costs.
    assert!(within.parse::<u64>().unwrap() < 50_000, "{within} in tenths of microseconds");
    println!("a connection of a unix socket takes {within} tenths of a microsecond in the sandbox");
}
