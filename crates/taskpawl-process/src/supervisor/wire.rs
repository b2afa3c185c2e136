//! The binary protocol between the engine and its supervisor. A message is a tag followed by fields. Numbers
//! are little-endian, and texts are prefixed by their length.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::process::Signal;

use crate::network::{Source, Transport};
use crate::profile::{Enforcement, Layers, Level, Network, NetworkWall, Profile, ResourceLimits, Substitute};
use crate::sandbox::Refusal;
use crate::spawn_spec::SpawnSpec;

/// The protocol version; the handshake fails if the two sides differ.
pub(super) const VERSION: u32 = 11;

/// A request of the engine.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Request<'a> {
    /// The first message. The lock of the run is passed with it, if there is one.
    Start(Box<Start<'a>>),
    /// Starts a program. Its descriptors are passed in this order: standard output, standard error, then, if
    /// present, the passed descriptor and standard input.
    Spawn { id: u64, spec: SpawnSpec<'a> },
    /// Signals all processes of a program.
    Signal { id: u64, signal: Signal },
    /// Asks for the call whose programs have a socket.
    FindCall { question: u64, source: Source },
}

/// The handshake of the engine. From another version only `version` is parsed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Start<'a> {
    pub(super) version: u32,
    /// The prefix of all environment markers.
    pub(super) mark: Cow<'a, str>,
    /// The safeguards that a test has disabled.
    pub(super) faults: u32,
    /// True if the first descriptor is the lock of the run.
    pub(super) has_lock: bool,
    /// The sandbox that the supervisor has to set up.
    pub(super) profile: Option<Cow<'a, Profile>>,
}

/// A reply of the supervisor.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// The first reply, if the sandbox is in force.
    Hello(Hello),
    /// The first reply, if the sandbox cannot be enforced. The supervisor then ends.
    Refused(Refusal),
    /// Comes before `Hello`. The descriptors of the message are listening sockets for granted hosts and ports.
    Sockets,
    /// The program could not be started, with the errno.
    NotStarted { id: u64, errno: i32 },
    /// The program ended with this wait status, and no process of it is left that could be recognized.
    Ended { id: u64, status: i32 },
    /// Answers a question for a call; `None` if no program has the socket.
    FoundCall { question: u64, call: Option<u64> },
    /// A program of a call found no listener at a port of the loopback.
    RefusedPort { call: u64, port: u16 },
    /// A program of a call could not connect to the socket at an absolute path.
    RefusedSocket { call: u64, path: PathBuf },
}

/// The handshake of the supervisor. From another version only `version` is parsed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) version: u32,
    /// The restrictions of its sandbox.
    pub(super) enforcement: Option<Enforcement>,
    /// The cgroup to remove after its end.
    pub(super) cgroup: Option<PathBuf>,
}

impl Request<'_> {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer(Vec::with_capacity(256));
        match self {
            Self::Start(start) => {
                writer.u8(0).u32(start.version).text(OsStr::new(&*start.mark)).u32(start.faults);
                writer.bool(start.has_lock).option(start.profile.as_deref(), Writer::profile);
            }
            Self::Spawn { id, spec } => return Self::write_spawn(*id, spec),
            Self::Signal { id, signal } => {
                writer.u8(2).u64(*id).u8(u8::from(*signal != Signal::TERM));
            }
            Self::FindCall { question, source } => {
                writer.u8(3).u64(*question).bool(source.transport == Transport::Udp).u32(source.port.into());
            }
        }
        writer.0
    }

    /// Serializes a [`Request::Spawn`] from a borrowed spec.
    pub(super) fn write_spawn(id: u64, spec: &SpawnSpec<'_>) -> Vec<u8> {
        let mut writer = Writer(Vec::with_capacity(512));
        writer.u8(1).u64(id).spec(spec);
        writer.0
    }
}

impl<'a> Request<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> io::Result<Self> {
        let mut reader = Reader(bytes);
        Ok(match reader.u8()? {
            0 => Self::Start(Box::new(reader.start()?)),
            1 => Self::Spawn { id: reader.u64()?, spec: reader.spec()? },
            2 => {
                let id = reader.u64()?;
                Self::Signal { id, signal: if reader.u8()? == 0 { Signal::TERM } else { Signal::KILL } }
            }
            3 => {
                let (question, is_packet) = (reader.u64()?, reader.bool()?);
                let transport = if is_packet { Transport::Udp } else { Transport::Tcp };
                let port = reader.u32()?.try_into().map_err(|_| malformed())?;
                Self::FindCall { question, source: Source { transport, port } }
            }
            _ => return Err(malformed()),
        })
    }
}

impl Reply {
    /// Appends the reply to a message.
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        let mut writer = Writer(std::mem::take(bytes));
        match self {
            Self::Hello(hello) => writer.u8(0).hello(hello),
            Self::NotStarted { id, errno } => writer.u8(1).u64(*id).u32(errno.cast_unsigned()),
            Self::Ended { id, status } => writer.u8(2).u64(*id).u32(status.cast_unsigned()),
            Self::Refused(Refusal { missing, advice, cgroup }) => writer
                .u8(3)
                .str(missing)
                .str(advice)
                .option(cgroup.as_deref(), |writer, path| writer.text(path.as_os_str())),
            Self::Sockets => writer.u8(4),
            Self::RefusedPort { call, port } => writer.u8(6).u64(*call).u32((*port).into()),
            Self::RefusedSocket { call, path } => writer.u8(7).u64(*call).text(path.as_os_str()),
            Self::FoundCall { question, call } => writer.u8(5).u64(*question).option(*call, Writer::u64),
        };
        *bytes = writer.0;
    }

    /// Parses all replies of a message.
    pub(super) fn read_all(bytes: &[u8]) -> io::Result<Vec<Self>> {
        let mut reader = Reader(bytes);
        let mut replies = Vec::new();
        while !reader.0.is_empty() {
            replies.push(match reader.u8()? {
                0 => Self::Hello(reader.hello()?),
                1 => Self::NotStarted { id: reader.u64()?, errno: reader.u32()?.cast_signed() },
                2 => Self::Ended { id: reader.u64()?, status: reader.u32()?.cast_signed() },
                3 => Self::Refused(Refusal {
                    missing: reader.string()?,
                    advice: reader.string()?,
                    cgroup: reader.option(Reader::path)?,
                }),
                4 => Self::Sockets,
                6 => {
                    let (call, port) = (reader.u64()?, reader.u32()?);
                    Self::RefusedPort { call, port: port.try_into().map_err(|_| malformed())? }
                }
                7 => Self::RefusedSocket { call: reader.u64()?, path: reader.path()? },
                5 => Self::FoundCall { question: reader.u64()?, call: reader.option(Reader::u64)? },
                _ => return Err(malformed()),
            });
        }
        Ok(replies)
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn u8(&mut self, number: u8) -> &mut Self {
        self.0.push(number);
        self
    }

    fn u32(&mut self, number: u32) -> &mut Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    fn u64(&mut self, number: u64) -> &mut Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    fn bool(&mut self, is: bool) -> &mut Self {
        self.u8(is.into())
    }

    fn str(&mut self, text: &str) -> &mut Self {
        self.text(OsStr::new(text))
    }

    fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T) -> &mut Self) -> &mut Self {
        self.bool(value.is_some());
        match value {
            Some(value) => write(self, value),
            None => self,
        }
    }

    fn paths(&mut self, paths: &[PathBuf]) -> &mut Self {
        paths.iter().fold(self.count(paths.len()), |writer, path| writer.text(path.as_os_str()))
    }

    fn substitutes(&mut self, substitutes: &[Substitute]) -> &mut Self {
        let paths = substitutes.iter().flat_map(|pair| [pair.path.clone(), pair.source.clone()]);
        self.paths(&paths.collect::<Vec<_>>())
    }

    fn profile(&mut self, profile: &Profile) -> &mut Self {
        let Profile {
            level,
            network,
            hosts,
            ports,
            write,
            read,
            emptied,
            private,
            layers,
            copies,
            hidden,
            administered,
            read_only,
            guarded,
            limits,
            gaps,
        } = profile;
        self.bool(*level == Level::Strict).bool(*network == Network::Full);
        hosts.iter().fold(self.count(hosts.len()), |writer, host| writer.str(&host.to_string()));
        ports.iter().fold(self.count(ports.len()), |writer, port| writer.u32((*port).into()));
        self.paths(write)
            .paths(read)
            .paths(emptied)
            .substitutes(private)
            .option(layers.source.as_deref(), |writer, path| writer.text(path.as_os_str()))
            .paths(&layers.overlaid)
            .paths(&layers.own)
            .substitutes(copies)
            .paths(hidden)
            .paths(administered)
            .paths(read_only)
            .paths(guarded);
        self.u64(limits.open_files)
            .u64(limits.file_size)
            .option(limits.processes, Self::u64)
            .option(limits.memory, Self::u64)
            .strings(gaps)
    }

    fn hello(&mut self, hello: &Hello) -> &mut Self {
        // An unused number, kept because earlier versions had it in front of the version.
        self.u64(0).u32(hello.version).option(hello.enforcement.as_ref(), Self::enforcement);
        self.option(hello.cgroup.as_deref(), |writer, path| writer.text(path.as_os_str()))
    }

    fn enforcement(&mut self, enforcement: &Enforcement) -> &mut Self {
        let Enforcement { level, landlock, mounts, own_processes, network, cgroup, processes, gaps } =
            enforcement;
        self.bool(*level == Level::Strict).u32(*landlock).bool(*mounts).bool(*own_processes);
        self.u8(match network {
            NetworkWall::Open => 0,
            NetworkWall::Filter => 1,
            NetworkWall::Namespace => 2,
        });
        self.bool(*cgroup).option(*processes, Self::u64).strings(gaps)
    }

    fn strings(&mut self, texts: &[String]) -> &mut Self {
        texts.iter().fold(self.count(texts.len()), |writer, text| writer.str(text))
    }

    fn count(&mut self, count: usize) -> &mut Self {
        self.u64(count as u64)
    }

    fn text(&mut self, text: &OsStr) -> &mut Self {
        self.count(text.len());
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    fn spec(&mut self, spec: &SpawnSpec<'_>) -> &mut Self {
        self.text(&spec.file).text(&spec.cwd).u8(spec.inherits.into());
        self.count(spec.argv.len());
        for word in &spec.argv {
            self.text(word);
        }
        self.count(spec.variables.len());
        for (name, value) in &spec.variables {
            self.text(name).u8(value.is_some().into());
            if let Some(value) = value {
                self.text(value);
            }
        }
        self.text(spec.handover.unwrap_or_default())
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or_else(malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| malformed())
    }

    fn u8(&mut self) -> io::Result<u8> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    fn u32(&mut self) -> io::Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> io::Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn text(&mut self) -> io::Result<&'a OsStr> {
        let bytes = usize::try_from(self.u64()?).map_err(|_| malformed())?;
        Ok(OsStr::from_bytes(self.take(bytes)?))
    }

    fn bool(&mut self) -> io::Result<bool> {
        Ok(self.u8()? != 0)
    }

    fn string(&mut self) -> io::Result<String> {
        Ok(self.text()?.to_string_lossy().into_owned())
    }

    fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> io::Result<T>) -> io::Result<Option<T>> {
        if self.bool()? { read(self).map(Some) } else { Ok(None) }
    }

    fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> io::Result<T>) -> io::Result<Vec<T>> {
        (0..self.u64()?).map(|_| read(self)).collect()
    }

    fn path(&mut self) -> io::Result<PathBuf> {
        self.text().map(PathBuf::from)
    }

    fn level(&mut self) -> io::Result<Level> {
        Ok(if self.bool()? { Level::Strict } else { Level::Standard })
    }

    fn start(&mut self) -> io::Result<Start<'a>> {
        let version = self.u32()?;
        if version != VERSION {
            return Ok(Start { version, ..Start::default() });
        }
        Ok(Start {
            version,
            mark: String::from_utf8_lossy(self.text()?.as_bytes()),
            faults: self.u32()?,
            has_lock: self.bool()?,
            profile: self.option(Self::profile)?.map(Cow::Owned),
        })
    }

    fn substitutes(&mut self) -> io::Result<Vec<Substitute>> {
        let paths: Vec<PathBuf> = self.list(Self::path)?;
        let pairs = paths.chunks_exact(2);
        Ok(pairs.map(|pair| Substitute { path: pair[0].clone(), source: pair[1].clone() }).collect())
    }

    fn profile(&mut self) -> io::Result<Profile> {
        Ok(Profile {
            level: self.level()?,
            network: if self.bool()? { Network::Full } else { Network::None },
            hosts: self.list(|reader| reader.string()?.parse().map_err(|_| malformed()))?,
            ports: self.list(|reader| reader.u32()?.try_into().map_err(|_| malformed()))?,
            write: self.list(Self::path)?,
            read: self.list(Self::path)?,
            emptied: self.list(Self::path)?,
            private: self.substitutes()?,
            layers: Layers {
                source: self.option(Self::path)?,
                overlaid: self.list(Self::path)?,
                own: self.list(Self::path)?,
            },
            copies: self.substitutes()?,
            hidden: self.list(Self::path)?,
            administered: self.list(Self::path)?,
            read_only: self.list(Self::path)?,
            guarded: self.list(Self::path)?,
            limits: ResourceLimits {
                open_files: self.u64()?,
                file_size: self.u64()?,
                processes: self.option(Self::u64)?,
                memory: self.option(Self::u64)?,
            },
            gaps: self.list(Self::string)?,
        })
    }

    fn hello(&mut self) -> io::Result<Hello> {
        let (_, version) = (self.u64()?, self.u32()?);
        if version != VERSION {
            // The rest has the format of the other version, so do not parse it.
            self.0 = &[];
            return Ok(Hello { version, ..Hello::default() });
        }
        let enforcement = self.option(Self::enforcement)?;
        Ok(Hello { version, enforcement, cgroup: self.option(Self::path)? })
    }

    fn enforcement(&mut self) -> io::Result<Enforcement> {
        Ok(Enforcement {
            level: self.level()?,
            landlock: self.u32()?,
            mounts: self.bool()?,
            own_processes: self.bool()?,
            network: match self.u8()? {
                0 => NetworkWall::Open,
                1 => NetworkWall::Filter,
                2 => NetworkWall::Namespace,
                _ => return Err(malformed()),
            },
            cgroup: self.bool()?,
            processes: self.option(Self::u64)?,
            gaps: self.list(Self::string)?,
        })
    }

    fn spec(&mut self) -> io::Result<SpawnSpec<'a>> {
        let (file, cwd) = (OsString::from(self.text()?), OsString::from(self.text()?));
        let inherits = self.u8()? != 0;
        let argv = (0..self.u64()?).map(|_| self.text()).collect::<io::Result<_>>()?;
        let variables = (0..self.u64()?).map(|_| self.variable()).collect::<io::Result<_>>()?;
        let handover = Some(self.text()?).filter(|variable| !variable.is_empty());
        Ok(SpawnSpec { file, argv, cwd, inherits, variables, handover })
    }

    fn variable(&mut self) -> io::Result<(&'a OsStr, Option<&'a OsStr>)> {
        let name = self.text()?;
        let value = if self.u8()? == 0 { None } else { Some(self.text()?) };
        Ok((name, value))
    }
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "malformed message")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile() -> Profile {
        Profile {
            level: Level::Strict,
            network: Network::Full,
            hosts: vec!["*.example.org:22".parse().unwrap(), "a.example".parse().unwrap()],
            ports: vec![5432],
            write: vec!["/w".into(), "/v".into()],
            read: vec!["/r".into()],
            emptied: vec!["/e".into()],
            private: vec![Substitute { path: "/tmp".into(), source: "/s".into() }],
            layers: Layers { source: Some("/l".into()), overlaid: vec!["/o".into()], own: vec!["/p".into()] },
            copies: vec![Substitute { path: "/c".into(), source: "/d".into() }],
            hidden: vec!["/h".into()],
            administered: vec!["/a".into()],
            read_only: vec!["/o".into()],
            guarded: vec!["/g".into()],
            limits: ResourceLimits { open_files: 7, file_size: 5, processes: Some(8), memory: None },
            gaps: vec!["a gap".to_owned()],
        }
    }

    fn requests() -> Vec<Request<'static>> {
        let spec = SpawnSpec {
            file: "/bin/echo".into(),
            argv: vec![OsStr::new("echo"), OsStr::new(""), OsStr::from_bytes(b"\xff")],
            cwd: "/tmp".into(),
            inherits: true,
            variables: vec![(OsStr::new("A"), Some(OsStr::new("1"))), (OsStr::new("B"), None)],
            handover: Some(OsStr::new("C")),
        };
        vec![
            Request::Start(Box::new(Start {
                version: VERSION,
                mark: "mark".into(),
                faults: 3,
                ..Start::default()
            })),
            Request::Start(Box::new(Start {
                version: VERSION,
                profile: Some(Cow::Owned(profile())),
                ..Start::default()
            })),
            Request::Spawn { id: 7, spec },
            Request::Signal { id: 7, signal: Signal::TERM },
            Request::Signal { id: 8, signal: Signal::KILL },
        ]
    }

    #[test]
    fn requests_round_trip_and_truncated_ones_are_errors() {
        for request in requests() {
            let bytes = request.to_bytes();
            assert_eq!(Request::read(&bytes).unwrap(), request);
            for end in 0..bytes.len() {
                Request::read(&bytes[..end]).unwrap_err();
            }
        }
        Request::read(&[9]).unwrap_err();
    }

    #[test]
    fn replies_of_one_message_round_trip() {
        let enforcement = Enforcement {
            level: Level::Strict,
            landlock: 7,
            mounts: true,
            own_processes: true,
            network: NetworkWall::Filter,
            cgroup: true,
            processes: Some(9),
            gaps: vec!["a gap".to_owned(), String::new()],
        };
        let hello = Hello { version: VERSION, enforcement: Some(enforcement), cgroup: Some("/c".into()) };
        let replies = [
            Reply::Hello(hello),
            Reply::Refused(Refusal { cgroup: Some("/c".into()), ..Refusal::new("this", "that") }),
            Reply::Sockets,
            Reply::NotStarted { id: 1, errno: 2 },
            Reply::Ended { id: u64::MAX, status: -1 },
            Reply::FoundCall { question: 1, call: None },
            Reply::RefusedPort { call: 1, port: 5432 },
            Reply::RefusedSocket { call: 1, path: "/run/x.sock".into() },
        ];
        let mut bytes = Vec::new();
        for reply in &replies {
            reply.write(&mut bytes);
        }
        assert_eq!(Reply::read_all(&bytes).unwrap(), replies);
        Reply::read_all(&bytes[..bytes.len() - 1]).unwrap_err();
    }

    #[test]
    fn only_the_version_is_parsed_from_another_version() {
        let other = VERSION + 1;
        let start = [&[0][..], &other.to_le_bytes(), b"?"].concat();
        assert_eq!(
            Request::read(&start).unwrap(),
            Request::Start(Box::new(Start { version: other, ..Start::default() }))
        );
        let hello = [&[0][..], &[0; 8], &other.to_le_bytes(), b"?"].concat();
        let expected = [Reply::Hello(Hello { version: other, ..Hello::default() })];
        assert_eq!(Reply::read_all(&hello).unwrap(), expected);
    }
}
