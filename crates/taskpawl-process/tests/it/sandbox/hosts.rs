//! Granted names and ports, with the network clients of this machine. Servers and addresses are those of a network namespace of the
//! test, in which `/etc/hosts` names them: nothing leaves this machine.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use taskpawl_fuzz::skip;
use taskpawl_process::{Network, NetworkWall, RefusedAccess};

use super::Home;

/// Tells the test binary that it runs in the namespace, and whether addresses and server names are checked there.
const INSIDE: &str = "TASKPAWL_PROCESS_TEST_HOSTS";
const UNCHECKED: &str = "unchecked";

const HOSTS: &str = "127.0.0.1 localhost rebind.test
93.184.216.34 granted.test other.test api.wild.test
169.254.169.254 metadata.test
10.77.0.1 private.test private.wild.test
";

/// Prepares the namespace, and continues with the test binary.
const PREPARE: &str = r#"set -e
ip link set lo up
for address in 93.184.216.34 169.254.169.254 10.77.0.1; do ip address add $address/32 dev lo; done
mount --bind "$1" /etc/hosts
exec "$2" --exact sandbox::hosts::makes_its_attempts_in_the_namespace --nocapture"#;

/// The body of every answer. `git` reads it as a list of branches.
const BODY: &str = "1111111111111111111111111111111111111111\trefs/heads/main\n";

/// Parts of what the servers send, for HTTP, for TLS, and for a client that shows the certificate.
const RECEIVED: [&str; 3] = ["refs/heads/main", "s_server", "BEGIN CERTIFICATE"];

/// The clients, each with a script that prints what it receives from `URL`. Exit codes prove nothing: `node` ends with 0 if a reset
/// connection leaves its promise open.
const CLIENTS: [(&str, &str); 6] = [
    ("curl", "curl -sSfk -m 8 URL"),
    ("wget", "wget -qO- --no-check-certificate -T 8 -t 1 URL"),
    (
        "/usr/bin/python3",
        "/usr/bin/python3 -c \"import ssl, urllib.request as u; print(u.urlopen('URL', timeout=8, context=ssl._create_unverified_context()).read())\"",
    ),
    (
        "node",
        "NODE_TLS_REJECT_UNAUTHORIZED=0 node -e \"fetch('URL').then(a => a.text()).then(console.log).catch(() => {})\"",
    ),
    ("git", "git -c http.sslVerify=false ls-remote URL"),
    (
        "perl",
        "perl -MHTTP::Tiny -e \"print HTTP::Tiny->new(timeout => 8, verify_SSL => 0)->get('URL')->{content}\"",
    ),
];

/// Attempts that a profile with grants for `granted.test`, `metadata.test` and `rebind.test` must refuse.
const REFUSED: [(&str, &str); 6] = [
    ("another name", "http://other.test/"),
    ("another name by TLS", "https://other.test/"),
    ("a literal address", "http://93.184.216.34/"),
    ("the loopback outside", "http://127.0.0.1:8080/"),
    ("a link-local address by a granted name", "http://metadata.test/"),
    ("a loopback address by a granted name", "http://rebind.test/"),
];

/// Asks a granted name for another server.
const FOREIGN_NAME: [(&str, &str); 2] = [
    ("curl", "curl -sSfk -m 8 --connect-to other.test:443:granted.test:443 https://other.test/"),
    ("openssl", "openssl s_client -connect granted.test:443 -servername other.test </dev/null"),
];

fn has(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", "command -v \"$0\"", program]).output();
    found.is_ok_and(|output| output.status.success())
}

/// Runs the attempts in a new network namespace; `mode` is passed on. Returns whether the machine allows one.
fn in_namespace(mode: &str) -> bool {
    let hosts = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(hosts.path(), HOSTS).unwrap();
    let inside = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--net", "--mount", "sh", "-c", script, "sh"]);
        command.arg(hosts.path()).arg(std::env::current_exe().unwrap()).env(INSIDE, mode);
        command.output()
    };
    let checked = inside("ip link set lo up && ip address add 10.77.0.1/32 dev lo");
    if !checked.as_ref().is_ok_and(|output| output.status.success()) || !has("openssl") {
        skip("unshare, ip or openssl", "granted hosts", format!("{checked:?}"));
        return false;
    }
    let output = inside(PREPARE).unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    // A client that was skipped inside must not look like a success. Not `eprint!`, which the test harness captures.
    let _ = std::io::stderr().write_all(&output.stderr);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "{text}");
    true
}

#[test]
fn programs_reach_granted_names_and_no_others() {
    in_namespace("checked");
}

/// Without the checks of addresses and server names, granted names lead everywhere.
#[cfg(feature = "faults")]
#[test]
fn control_granted_names_lead_everywhere_without_the_checks() {
    in_namespace(UNCHECKED);
}

#[tokio::test]
async fn makes_its_attempts_in_the_namespace() {
    let Some(mode) = std::env::var_os(INSIDE) else { return };
    let _servers = Servers::start();
    if mode == UNCHECKED {
        attempts_without_checks().await;
    } else {
        attempts_with_checks().await;
        attempts_with_the_full_network().await;
    }
}

async fn attempts_with_checks() {
    let home = home(&["granted.test", "metadata.test", "rebind.test", "private.test"], &[]);
    if home.enforcement().await.network != NetworkWall::Namespace {
        skip("a network namespace in a namespace", "granted hosts", "the system provides none");
        return;
    }
    let clients: Vec<_> = CLIENTS.into_iter().filter(|(program, _)| has(program)).collect();
    assert!(clients.len() > 2, "{clients:?}");
    for (client, script) in &clients {
        for url in ["http://granted.test/", "https://granted.test/", "http://private.test/"] {
            // `perl` has no module for TLS, and the server is none of git.
            let is_possible = !matches!(*client, "git" | "perl") || !url.starts_with("https");
            assert!(!is_possible || reached(&home, script, url).await, "{client} reaches {url}");
        }
        for (what, url) in REFUSED {
            assert!(!reached(&home, script, url).await, "{client} must not reach {what}");
        }
    }
    for (client, script) in FOREIGN_NAME.into_iter().filter(|(program, _)| has(program)) {
        assert!(!reached(&home, script, "").await, "{client} must not reach a foreign server");
    }
    records(&home).await;
    wildcards_and_ports().await;
}

/// Refused hosts are recorded with the reason.
async fn records(home: &Home) {
    let outcome = home.shell("curl -sf http://other.test; curl -sf http://metadata.test; curl -skf --connect-to other.test:443:granted.test:443 https://other.test; true").await;
    let host = "granted.test".to_owned();
    let expected = [
        RefusedAccess::Host { name: "other.test".to_owned() },
        RefusedAccess::Address {
            host: "metadata.test".to_owned(),
            address: "169.254.169.254".parse().unwrap(),
            reason: "a link-local address",
        },
        RefusedAccess::ServerName { host, asked: Some("other.test".to_owned()) },
    ];
    assert_eq!(outcome.refused, expected);
    assert_eq!(home.shell("curl -sf http://granted.test").await.refused, []);
}

async fn wildcards_and_ports() {
    let home = home(&["*.wild.test"], &[8080]);
    let curl = CLIENTS[0].1;
    for url in [
        "http://api.wild.test/",
        "https://api.wild.test/",
        "http://localhost:8080/",
        "http://127.0.0.1:8080/",
    ] {
        assert!(reached(&home, curl, url).await, "{url}");
    }
    // The owner of a domain must not choose an address in the user's own network.
    for url in [
        "http://private.wild.test/",
        "http://wild.test/",
        "http://api.wild.test:8080/",
        "http://127.0.0.1:80/",
    ] {
        assert!(!reached(&home, curl, url).await, "{url}");
    }
}

/// Control: with the network of the user all these attempts succeed.
async fn attempts_with_the_full_network() {
    let mut home = home(&[], &[]);
    home.profile.network = Network::Full;
    for (what, url) in REFUSED {
        assert!(reached(&home, CLIENTS[0].1, url).await, "{what} is there");
    }
    for (client, script) in FOREIGN_NAME.into_iter().filter(|(program, _)| has(program)) {
        assert!(reached(&home, script, "").await, "{client} reaches a foreign server");
    }
}

async fn attempts_without_checks() {
    #[cfg(feature = "faults")]
    taskpawl_process::faults::enable(taskpawl_process::faults::Fault::AnyDestination);
    let home = home(&["granted.test", "metadata.test", "rebind.test"], &[]);
    for url in ["http://metadata.test/", "http://rebind.test/"] {
        assert!(reached(&home, CLIENTS[0].1, url).await, "{url}");
    }
    for (client, script) in FOREIGN_NAME.into_iter().filter(|(program, _)| has(program)) {
        assert!(reached(&home, script, "").await, "{client}");
    }
}

fn home(hosts: &[&str], ports: &[u16]) -> Home {
    let mut home = Home::new();
    home.profile.hosts = hosts.iter().map(|host| host.parse().unwrap()).collect();
    home.profile.ports = ports.to_vec();
    home
}

/// Returns whether the answer of a server arrived. The servers must agree, as far as they count: what is refused never reaches them.
async fn reached(home: &Home, script: &str, url: &str) -> bool {
    let before = HITS.load(Ordering::SeqCst);
    let outcome = home.shell(&script.replace("URL", url)).await;
    let has_received = RECEIVED.iter().any(|part| outcome.stdout.text.contains(part));
    let was_asked = HITS.load(Ordering::SeqCst) > before;
    assert!(
        has_received || !was_asked,
        "`{script}` `{url}` reached the server without an answer: {outcome:?}"
    );
    has_received
}

/// Servers on every address of the namespace, until they are dropped.
struct Servers {
    tls: Child,
    _key: tempfile::TempDir,
}

impl Servers {
    fn start() -> Self {
        for port in [80, 8080] {
            let listener = TcpListener::bind(("0.0.0.0", port)).unwrap();
            std::thread::spawn(move || listener.incoming().flatten().for_each(answer));
        }
        let key = tempfile::tempdir().unwrap();
        let openssl = |args: &str| {
            let mut command = Command::new("openssl");
            command.args(args.split(' ')).current_dir(key.path()).stdout(Stdio::null()).stderr(Stdio::null());
            command
        };
        let made =
            openssl("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=granted.test -keyout key -out cert");
        assert!({ made }.status().unwrap().success());
        let tls = openssl("s_server -accept 0.0.0.0:443 -key key -cert cert -www");
        let mut servers = Self { tls: { tls }.stdin(Stdio::piped()).spawn().unwrap(), _key: key };
        while std::net::TcpStream::connect("127.0.0.1:443").is_err() {
            assert!(servers.tls.try_wait().unwrap().is_none(), "it serves until it is killed");
            std::thread::sleep(Duration::from_millis(5));
        }
        servers
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        let _ = self.tls.kill();
        let _ = self.tls.wait();
    }
}

fn reply() -> String {
    format!("HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{BODY}", BODY.len())
}

/// The connections that the servers without TLS have accepted.
static HITS: AtomicUsize = AtomicUsize::new(0);

fn answer(mut stream: std::net::TcpStream) {
    HITS.fetch_add(1, Ordering::SeqCst);
    let _ = stream.read(&mut [0; 4096]).and_then(|_| stream.write_all(reply().as_bytes()));
}
