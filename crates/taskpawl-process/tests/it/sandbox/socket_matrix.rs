//! Sockets of other programs in every shape, by every spelling, with every kind of socket: 112 attempts in each network.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use taskpawl_process::{Network, Sandbox};

use super::connect::with_broker;
use super::{Home, fs};

/// Binds a socket of each shape and kind in the working directory, says `ready`, and then the name of each socket that hears something.
/// `late` comes after a line of input.
const SERVER: &str = r"
import os, select, socket, sys
kinds = {'stream': socket.SOCK_STREAM, 'seqpacket': socket.SOCK_SEQPACKET, 'dgram': socket.SOCK_DGRAM}
sockets = {}
def bind(shape, kind, address):
    s = socket.socket(socket.AF_UNIX, kinds[kind]); s.bind(address)
    if kind != 'dgram': s.listen(64)
    sockets[s] = f'{shape}-{kind}'
here = os.getcwd()
os.makedirs('deep', exist_ok=True)
for kind in kinds:
    bind('plain', kind, f'{here}/plain-{kind}')
    bind('relative', kind, f'relative-{kind}')
    bind('renamed', kind, f'{here}/before-{kind}'); os.rename(f'before-{kind}', f'deep/renamed-{kind}')
    bind('linked', kind, f'{here}/first-{kind}'); os.link(f'first-{kind}', f'linked-{kind}')
    bind('opened', kind, f'{here}/../../opened/opened-{kind}')
    bind('abstract', kind, '\0' + sys.argv[1] + kind)
print('ready', flush=True)
sys.stdin.readline()
for kind in kinds: bind('late', kind, f'{here}/late-{kind}')
print('late', flush=True)
while True:
    for s in select.select([*sockets, sys.stdin], [], [])[0]:
        if s is sys.stdin:
            print('end', flush=True); sys.exit()
        if s.type == socket.SOCK_DGRAM: s.recv(9)
        else: s.accept()
        print(sockets[s], flush=True)
";

/// Tries all of them, and prints those that were reached.
const CLIENT: &str = r"
import os, socket, sys
here = os.getcwd()
kinds = {'stream': socket.SOCK_STREAM, 'seqpacket': socket.SOCK_SEQPACKET, 'dgram': socket.SOCK_DGRAM, 'pair': socket.SOCK_DGRAM}
places = {'plain': 'plain', 'relative': 'relative', 'renamed': 'deep/renamed', 'linked': 'linked', 'opened': '../../opened/opened', 'late': 'late', 'abstract': None}
def spelled(path):
    link = f'{here}/link-{os.path.basename(path)}'
    if not os.path.lexists(link): os.symlink(f'{here}/{path}', link)
    return {'absolute': f'{here}/{path}', 'relative': path, 'link': link, 'proc': f'/proc/self/cwd/{path}'}
for shape, place in places.items():
    for kind, number in kinds.items():
        server = 'dgram' if kind == 'pair' else kind
        names = spelled(f'{place}-{server}') if place else {n: '\0' + sys.argv[1] + server for n in ['a', 'b', 'c', 'd']}
        for spelling, address in names.items():
            try:
                s = socket.socketpair(socket.AF_UNIX, number)[0] if kind == 'pair' else socket.socket(socket.AF_UNIX, number)
                if number == socket.SOCK_DGRAM: s.sendto(b'x', address)
                else: s.connect(address)
                print(f'{shape}-{kind}-{spelling}')
            except OSError: pass
print('tried')
";

struct Server {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Server {
    fn start(directory: &Path, name: &str) -> Self {
        let mut child = Command::new("sh")
            .args(["-c", "exec python3 -c \"$0\" \"$1\"", SERVER, name])
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut server = Self { child, lines };
        assert_eq!(server.next(), "ready");
        server
    }

    fn next(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    fn tell(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    /// Returns the number of messages and connections.
    fn heard(mut self) -> usize {
        self.tell();
        let count = std::iter::from_fn(|| Some(self.next()).filter(|line| line != "end")).count();
        self.child.wait().unwrap();
        count
    }
}

/// Returns the attempts that were reached, and the number of those that the servers heard.
async fn tried(home: &Home, is_on: bool) -> (Vec<String>, usize) {
    let directory = home.bench.path("project/shapes");
    fs::create_dir_all(&directory).unwrap();
    fs::create_dir_all(home.bench.path("opened")).unwrap();
    let name = format!("taskpawl-shapes-{}-{:?}-{is_on}-", std::process::id(), home.profile.network);
    let mut server = Server::start(&directory, &name);
    // The sandbox is set up before the last sockets are there.
    assert_eq!(home.shell("true").await.code, 0);
    server.tell();
    assert_eq!(server.next(), "late");
    let mut program = home.program(&["sh", "-c", "exec python3 -c \"$0\" \"$1\"", CLIENT, &name]);
    program.cwd = directory.clone();
    if !is_on {
        program.sandbox = Sandbox::Off;
    }
    let outcome = home.bench.run(&program).await.unwrap();
    let mut reached: Vec<String> = outcome.stdout.text.lines().map(str::to_owned).collect();
    assert_eq!(reached.pop().as_deref(), Some("tried"), "{:?}", outcome.stderr);
    let heard = server.heard();
    fs::remove_dir_all(directory).unwrap();
    fs::remove_dir_all(home.bench.path("opened")).unwrap();
    (reached, heard)
}

#[tokio::test]
async fn no_shape_and_no_spelling_leads_to_another_program() {
    for network in [Network::None, Network::Full] {
        let Some(mut home) = with_broker(network).await else { return };
        fs::create_dir_all(home.bench.path("opened")).unwrap();
        home.profile.write.push(home.bench.path("opened"));
        assert_eq!(tried(&home, true).await, (Vec::new(), 0), "{network:?}");
    }
}

/// Without the sandbox all attempts succeed.
#[tokio::test]
async fn control_all_shapes_are_reached_without_the_sandbox() {
    let Some(home) = with_broker(Network::None).await else { return };
    let (reached, heard) = tried(&home, false).await;
    assert_eq!((reached.len(), heard), (112, 112), "{reached:?}");
}

/// Tells the started test process the level of its sandbox.
#[cfg(feature = "faults")]
const LEVEL: &str = "TASKPAWL_PROCESS_TEST_LEVEL";

#[cfg(feature = "faults")]
#[tokio::test]
async fn tries_all_shapes_at_the_level_that_it_is_told() {
    use taskpawl_process::faults::{Fault, enable};

    let Some(level) = std::env::var_os(LEVEL) else { return };
    for fault in match level.to_str() {
        Some("B") => &[Fault::NoMounts][..],
        Some("C") => &[Fault::NoNamespaces],
        Some("D") => &[Fault::NoNamespaces, Fault::OldLandlock],
        other => panic!("no such level: {other:?}"),
    } {
        enable(*fault);
    }
    for network in [Network::None, Network::Full] {
        let mut home = Home::new();
        home.profile.network = network;
        fs::create_dir_all(home.bench.path("opened")).unwrap();
        home.profile.write.push(home.bench.path("opened"));
        // With the network of the user, no namespace is left at level B.
        let isolation = home.enforcement().await.isolation();
        assert!(network == Network::Full || level == isolation.as_str(), "{level:?}: {isolation:?}");
        assert_eq!(tried(&home, true).await, (Vec::new(), 0), "{level:?} {network:?}");
    }
    println!("HELD");
}

/// Without mounts the filter denies all unix sockets, so that there is nothing for the broker to decide about.
#[cfg(feature = "faults")]
#[test]
fn no_shape_leads_to_another_program_at_lower_levels() {
    for level in ["B", "C", "D"] {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let test = "sandbox::socket_matrix::tries_all_shapes_at_the_level_that_it_is_told";
        let output = command.args(["--exact", test, "--nocapture"]).env(LEVEL, level).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("HELD"), "{level}: {said}{}", String::from_utf8_lossy(&output.stderr));
    }
}
