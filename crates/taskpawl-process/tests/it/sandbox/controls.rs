//! Controls of the sandbox tests: with a layer of the sandbox switched off, an attempt that the layer blocks must succeed.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use taskpawl_process::faults::{Fault, enable};

use super::*;

/// The layers that the started test process switches off, separated by spaces.
const WITHOUT: &str = "TASKPAWL_PROCESS_TEST_WITHOUT";

/// Stands for all layers: the attempt runs without a sandbox.
const UNHELD: &str = "all";

/// The layers to switch off, the attempt that then succeeds, and whether only root with capabilities can make it.
///
/// If two layers block the same attempt, both are listed.
const ESCAPES: [(&str, &str, bool); 17] = [
    ("landlock namespaces", "write ~/other/file", false),
    ("landlock namespaces", "read ~/secrets/key", false),
    ("landlock namespaces", "chmod ~/other/file", false),
    ("namespaces", "read ~/project/.env", false),
    ("namespaces", "write ~/project/.git/config", false),
    ("namespaces filter", "unix ~/other/socket", false),
    ("network", "connect ADDRESS", false),
    ("network scope broker", "abstract NAME", false),
    ("scope processes", "signal NEIGHBOUR", false),
    ("landlock capabilities processes", "ptrace NEIGHBOUR", true),
    ("room", "follow /proc/BESIDE/fd/1", false),
    ("filter", "system clone", false),
    ("processes", "read /proc/NEIGHBOUR/status", false),
    ("filter", "set-id ~/project/src/main", false),
    // The kernel refuses to schedule a process with more capabilities than the caller, so both layers are switched off.
    ("filter capabilities processes", "schedule priority NEIGHBOUR", false),
    ("capabilities processes", "read /proc/NEIGHBOUR/environ", true),
    ("capabilities", "setuid", true),
];

#[tokio::test]
async fn tries_without_layers_what_it_is_told_to() {
    let Some(without) = std::env::var_os(WITHOUT) else { return };
    let is_unheld = without == UNHELD;
    for layer in without.to_str().unwrap().split(' ').filter(|_| !is_unheld) {
        enable(match layer {
            "landlock" => Fault::NoLandlock,
            "room" => Fault::SharedRoom,
            "namespaces" => Fault::NoNamespaces,
            "network" => Fault::NoNetworkWall,
            "scope" => Fault::NoScope,
            "processes" => Fault::SharedProcesses,
            "filter" => Fault::NoFilter,
            "capabilities" => Fault::KeepCapabilities,
            "broker" => Fault::NoConnectBroker,
            other => panic!("no layer `{other}`"),
        });
    }
    let (home, neighbour) = (Home::new(), Neighbour::start());
    let _socket = UnixListener::bind(home.bench.path("other/socket")).unwrap();
    let outside = TcpListener::bind("127.0.0.1:0").unwrap();
    let name = format!("taskpawl-control-{}", std::process::id());
    let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap());
    let beside = home.shell("echo $$ > id; exec sleep 600");
    let attempt = async {
        let id = home.bench.pid("project/id").await.to_string();
        let what = std::env::var_os(ATTEMPT_WITHOUT).unwrap().into_string().unwrap();
        let what = what.replace("NEIGHBOUR", &neighbour.0.id().to_string()).replace("BESIDE", &id);
        let what = what.replace("NAME", &name).replace("ADDRESS", &outside.local_addr().unwrap().to_string());
        let what = home.placed(&what);
        let mut program = home.attempting(&what);
        if is_unheld {
            program.sandbox = Sandbox::Off;
        }
        (printed(&home.bench.run(&program).await.unwrap()), what)
    };
    tokio::select! {
        beside = beside => panic!("it ended: {beside:?}"),
        (said, what) = attempt => drop(said.unwrap_or_else(|error| panic!("`{what}`: {error}"))),
    }
}

const ATTEMPT_WITHOUT: &str = "TASKPAWL_PROCESS_TEST_ATTEMPT_WITHOUT";

#[tokio::test]
async fn without_a_layer_something_gets_through() {
    let is_able = has_capabilities();
    let has_mounts = Home::new().has_mounts().await;
    for (without, what, _) in ESCAPES.iter().filter(|(.., needs_root)| is_able || !needs_root) {
        // Without mounts the filter denies all Unix sockets, whatever the network setting is.
        if !has_mounts && what.starts_with("abstract") {
            skip("mounts", format!("the control `{what}`"), "another layer holds it");
            continue;
        }
        let output = tried(without, what);
        let text = String::from_utf8_lossy(&output.stderr);
        // An attempt that fails even without a sandbox proves nothing about the layer.
        if !output.status.success() && !tried(UNHELD, what).status.success() {
            skip(
                "rights",
                format!("the control `{what}`"),
                "it cannot be done here without a sandbox either",
            );
            continue;
        }
        assert!(output.status.success(), "`{what}` fails without {without}: {text}");
    }
}

#[tokio::test]
async fn set_id_bits_need_no_namespaces_to_be_refused() {
    let output = tried("namespaces", "set-id ~/project/src/main");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("os error 1)"), "{said}");
}

/// Returns whether this process has capabilities to drop. Root in a container or in a sandbox may have none.
fn has_capabilities() -> bool {
    use rustix::thread::{CapabilitySet, capabilities};

    let has =
        capabilities(None).unwrap().effective.contains(CapabilitySet::SYS_PTRACE | CapabilitySet::SETUID);
    if !has && rustix::process::getuid().is_root() {
        skip("capabilities", "the controls of capabilities", "root has none here");
    }
    has
}

fn tried(without: &str, what: &str) -> std::process::Output {
    let test = "sandbox::controls::tries_without_layers_what_it_is_told_to";
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(WITHOUT, without).env(ATTEMPT_WITHOUT, what);
    command.output().unwrap()
}
