//! The targets around a project: secrets, a store, a configuration, sockets, and a process.

use std::fs::{self, File};
use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use integration_tests::escape::World;
use tempfile::TempDir;

/// The user that owns a world if the harness is the superuser.
pub(crate) const NOBODY: u32 = 65534;

/// Parent directory of the worlds. Every user may write there, and unlike `/tmp` it is visible in a sandbox, so that the
/// restrictions are what blocks access.
const PLACE: &str = "/var/tmp";

/// Secrets in the home.
const SECRETS: [&str; 9] = [
    ".ssh/id_ed25519",
    ".ssh/authorized_keys",
    ".aws/credentials",
    ".gnupg/secring.gpg",
    ".netrc",
    ".kube/config",
    ".docker/config.json",
    ".config/gh/hosts.yml",
    ".config/gh/moved.yml",
];

/// Files of the project that a tool must not read or write.
const PROTECTED: [&str; 12] = [
    ".env",
    "service/.env.local",
    "other/.env",
    ".git/config",
    ".git/hooks/pre-push",
    ".git/HEAD",
    ".git/modules/m/HEAD",
    ".git/modules/m/config",
    "lib/.git/config",
    ".taskpawl/project.json",
    ".mcp.json",
    "taskpawl.toml",
];

/// Files in the directory that no tool may access.
const OUTSIDE: [&str; 7] =
    ["victim", "emptied", "removed", "renamed", "through-link", "through-proc", "to-be-linked"];

/// A world with its listeners.
#[derive(Debug)]
pub(crate) struct Around {
    directory: TempDir,
    pub(crate) world: World,
    /// Number of messages that came from the sandbox.
    heard: Arc<AtomicUsize>,
    bystander: Child,
    /// A file that every started process inherits, on purpose: a leaked descriptor must not reach a tool.
    _open_secret: File,
    /// The owner; `None` for the user of the harness.
    user: Option<u32>,
}

/// Fails if no world can be created on this machine.
pub(crate) fn probe() -> std::io::Result<()> {
    place().map(drop)
}

fn place() -> std::io::Result<TempDir> {
    tempfile::Builder::new().prefix("world-").tempdir_in(PLACE)
}

impl Around {
    /// Creates a world that belongs to a user.
    pub(crate) fn new(user: Option<u32>) -> Self {
        let directory = place().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let place = fs::canonicalize(directory.path()).unwrap();
        let (home, project, outside) = (place.join("home"), place.join("project"), place.join("outside"));
        lay_out(&home, &SECRETS, "a secret\n");
        lay_out(&project, &PROTECTED, "\n");
        lay_out(&outside, &OUTSIDE, "as it was\n");
        fs::write(project.join(".mcp.json"), "{}\n").unwrap();
        let id = "00000000-0000-4000-8000-000000000001";
        let json = serde_json::json!({"id": id, "path": &project}).to_string();
        fs::write(project.join(".taskpawl/project.json"), json).unwrap();
        fs::write(home.join(".bashrc"), "\n").unwrap();
        fs::create_dir(outside.join("empty")).unwrap();
        for name in ["bin", "store", "tmp", "sockets"] {
            fs::create_dir(place.join(name)).unwrap();
        }
        let config = home.join(".config/taskpawl");
        fs::create_dir_all(&config).unwrap();
        fs::write(config.join("config.toml"), "\n").unwrap();
        copy(env!("CARGO_BIN_EXE_taskpawl-under-test"), &place.join("bin/taskpawl"));
        copy(env!("CARGO_BIN_EXE_taskpawl-escape"), &project.join("escape"));
        let mut around = Self {
            world: World {
                store: place.join("store/tasks.db"),
                socket: place.join("sockets/stream"),
                abstract_name: format!("taskpawl-world-{}", std::process::id()),
                bystander: 0,
                shared_memory: Path::new("/dev/shm").join(place.file_name().unwrap()),
                project,
                home,
                outside,
                config,
                tcp: 0,
                tcp6: 0,
                udp: 0,
            },
            heard: Arc::default(),
            bystander: bystander(user),
            _open_secret: open_for_all(&place.join("home/.netrc")),
            directory,
            user,
        };
        around.world.abstract_name.push_str(&place.to_string_lossy());
        around.world.bystander = i32::try_from(around.bystander.id()).unwrap();
        around.listen();
        let world = serde_json::to_string(&around.world).unwrap();
        fs::write(around.world.project.join("world.json"), world).unwrap();
        if let Some(user) = user {
            give(around.directory.path(), user);
        }
        around
    }

    fn listen(&mut self) {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        self.world.tcp = tcp.local_addr().unwrap().port();
        self.hear(move || tcp.accept().and_then(|(mut stream, _)| stream.read(&mut [0; 16])));
        if let Ok(tcp) = TcpListener::bind("[::1]:0") {
            self.world.tcp6 = tcp.local_addr().unwrap().port();
            self.hear(move || tcp.accept().and_then(|(mut stream, _)| stream.read(&mut [0; 16])));
        }
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        self.world.udp = udp.local_addr().unwrap().port();
        self.hear(move || {
            let (bytes, from) = udp.recv_from(&mut [0; 16])?;
            udp.send_to(b"heard", from).map(|_| bytes)
        });
        let unix = UnixListener::bind(&self.world.socket).unwrap();
        self.hear(move || unix.accept().and_then(|(mut stream, _)| stream.read(&mut [0; 16])));
        for path in sockets_under_other_names(&self.world.home) {
            self.hear(move || path.accept().and_then(|(mut stream, _)| stream.read(&mut [0; 16])));
        }
        let datagrams = UnixDatagram::bind(self.world.socket.with_extension("datagram")).unwrap();
        self.hear(move || datagrams.recv(&mut [0; 16]));
        let address = SocketAddr::from_abstract_name(&self.world.abstract_name).unwrap();
        let unix = UnixListener::bind_addr(&address).unwrap();
        self.hear(move || unix.accept().and_then(|(mut stream, _)| stream.read(&mut [0; 16])));
        self.listen_late();
        // Open permissions, so that only the sandbox can block a connection.
        for path in [&self.world.socket, &self.world.socket.with_extension("datagram")] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
        }
    }

    /// Listens in the project as soon as a case asks for it: then the sandbox of the run is set up.
    fn listen_late(&self) {
        let heard = Arc::clone(&self.heard);
        let [asked, late] = [World::WANTS_LATE, World::LATE].map(|name| self.world.project.join(name));
        // The directory goes away at the end of the test.
        std::thread::spawn(move || {
            while late.parent().is_some_and(Path::exists) && !asked.exists() {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            // Bound elsewhere, so that it appears with its permissions.
            let first = late.with_extension("first");
            let Ok(listener) = UnixListener::bind(&first) else { return };
            fs::set_permissions(&first, fs::Permissions::from_mode(0o777)).unwrap();
            fs::rename(first, late).unwrap();
            while let Ok((mut stream, _)) = listener.accept() {
                let is_message = stream.read(&mut [0; 16]).is_ok_and(|bytes| bytes > 0);
                heard.fetch_add(usize::from(is_message), Ordering::Relaxed);
            }
        });
    }

    /// Counts incoming messages; the thread ends with the process.
    fn hear(&self, mut next: impl FnMut() -> std::io::Result<usize> + Send + 'static) {
        let heard = Arc::clone(&self.heard);
        std::thread::spawn(move || {
            while let Ok(bytes) = next() {
                heard.fetch_add(usize::from(bytes > 0), Ordering::Relaxed);
            }
        });
    }

    pub(crate) fn heard(&self) -> usize {
        self.heard.load(Ordering::Relaxed)
    }

    /// Returns the command that starts taskpawl as the user of this world.
    pub(crate) fn program(&self, args: &[&str]) -> Command {
        self.start(&self.directory.path().join("bin/taskpawl"), args)
    }

    /// Copies a program to a place where the user of this world can start it.
    pub(crate) fn place_program(&self, path: &str) -> PathBuf {
        let to = self.directory.path().join("bin").join(Path::new(path).file_name().unwrap());
        copy(path, &to);
        to
    }

    /// Returns the command that starts a program as the user of this world.
    pub(crate) fn start(&self, program: &Path, args: &[&str]) -> Command {
        let place = self.directory.path();
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(&self.world.project)
            .stdin(Stdio::null())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.world.home)
            .env("TMPDIR", place.join("tmp"))
            .env("USER", "user")
            .env("AWS_SECRET_ACCESS_KEY", "a secret")
            .env("TASKPAWL_STORE", &self.world.store);
        as_user(&mut command, self.user);
        command
    }

    /// Lets workers of this world run programs without a sandbox.
    pub(crate) fn set_sandbox_off(&self) {
        fs::write(self.world.config.join("config.toml"), "[sandbox]\nmode = \"off\"\n").unwrap();
    }

    /// Removes the file in shared memory, and returns whether it was visible to all programs of the machine.
    pub(crate) fn has_shared_memory(&self) -> bool {
        fs::remove_file(&self.world.shared_memory).is_ok()
    }

    /// Returns all files that no tool may change, with their content.
    pub(crate) fn untouchable(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let World { home, outside, .. } = &self.world;
        let mut found = Vec::new();
        for directory in [home, outside] {
            list(directory, &mut found);
        }
        // The engine makes the directories for artifacts, of which programs write that of their run. A worker keeps tickets and output.
        let artifacts = home.join(".local/state/taskpawl-artifacts");
        let workers = home.join(".local/state/taskpawl/workers");
        found.retain(|(path, _)| {
            !path.starts_with(&artifacts) && !artifacts.starts_with(path) && !path.starts_with(&workers)
        });
        found.sort();
        found
    }
}

impl Drop for Around {
    fn drop(&mut self) {
        let _ = self.bystander.kill();
        let _ = self.bystander.wait();
    }
}

/// Returns listeners in a home whose socket files no longer have the name that they were bound by.
fn sockets_under_other_names(home: &Path) -> [UnixListener; 3] {
    let renamed = UnixListener::bind(home.join("first-name")).unwrap();
    fs::rename(home.join("first-name"), home.join("renamed")).unwrap();
    let linked = UnixListener::bind(home.join("only-name")).unwrap();
    fs::hard_link(home.join("only-name"), home.join("second-name")).unwrap();
    // Changing the current directory would affect all tests of this process, so the relative name leads from it to the home.
    let here = std::env::current_dir().unwrap();
    let up: PathBuf = here.components().skip(1).map(|_| "..").collect();
    let relative = up.join(home.join("relative").strip_prefix("/").unwrap());
    let relative = UnixListener::bind(relative).unwrap();
    for name in ["renamed", "only-name", "relative"] {
        fs::set_permissions(home.join(name), fs::Permissions::from_mode(0o777)).unwrap();
    }
    [renamed, linked, relative]
}

fn lay_out(directory: &Path, files: &[&str], text: &str) {
    for file in files {
        let path = directory.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn copy(from: &str, to: &Path) {
    fs::copy(from, to).unwrap();
    fs::set_permissions(to, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Opens a file without close-on-exec, so that child processes inherit it.
fn open_for_all(path: &Path) -> File {
    let file = File::open(path).unwrap();
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    file
}

fn bystander(user: Option<u32>) -> Child {
    let mut command = Command::new("sleep");
    command.arg("3600").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    as_user(&mut command, user);
    command.spawn().unwrap()
}

fn as_user(command: &mut Command, user: Option<u32>) {
    use std::os::unix::process::CommandExt;
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
}

fn give(path: &Path, user: u32) {
    std::os::unix::fs::lchown(path, Some(user), Some(user)).unwrap();
    if path.is_dir() && !path.is_symlink() {
        for entry in fs::read_dir(path).unwrap() {
            give(&entry.unwrap().path(), user);
        }
    }
}

fn list(directory: &Path, found: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            found.push((path.clone(), Vec::new()));
            list(&path, found);
        } else {
            let text = fs::read(&path).unwrap_or_default();
            found.push((path, text));
        }
    }
}
