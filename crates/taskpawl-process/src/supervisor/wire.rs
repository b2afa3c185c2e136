//! What the engine and its supervisor say to each other, as bytes: a tag, then fields; numbers in little-endian order, texts with
//! their length before them.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;

use rustix::process::Signal;

use crate::recipe::Recipe;

/// Both sides have to speak the same version.
pub(super) const VERSION: u32 = 1;

/// What the engine asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Request<'a> {
    /// Comes first; the run's lock comes with it, if there is one.
    Start {
        version: u32,
        /// How the environment mark of every program begins.
        mark: Cow<'a, str>,
        /// Safeguards that a test takes away.
        faults: u32,
    },
    /// Start a program; its streams come with it: standard output, standard error, standard input if there is one.
    Spawn { id: u64, recipe: Recipe<'a> },
    /// Signal everything that belongs to a program.
    Signal { id: u64, signal: Signal },
}

/// What the supervisor says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// Comes first.
    Hello { version: u32 },
    /// The program could not be started; the number of the system's error.
    NotStarted { id: u64, errno: i32 },
    /// The program ended with this status of `wait`, and nothing of it is left that could be found.
    Ended { id: u64, status: i32 },
}

impl Request<'_> {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer(Vec::with_capacity(256));
        match self {
            Self::Start { version, mark, faults } => {
                writer.u8(0).u32(*version).text(OsStr::new(&**mark)).u32(*faults);
            }
            Self::Spawn { id, recipe } => return Self::write_spawn(*id, recipe),
            Self::Signal { id, signal } => {
                writer.u8(2).u64(*id).u8(u8::from(*signal != Signal::TERM));
            }
        }
        writer.0
    }

    /// Returns the bytes of [`Request::Spawn`] of a recipe that is only borrowed.
    pub(super) fn write_spawn(id: u64, recipe: &Recipe<'_>) -> Vec<u8> {
        let mut writer = Writer(Vec::with_capacity(512));
        writer.u8(1).u64(id).recipe(recipe);
        writer.0
    }
}

impl<'a> Request<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> io::Result<Self> {
        let mut reader = Reader(bytes);
        Ok(match reader.u8()? {
            0 => Self::Start {
                version: reader.u32()?,
                mark: String::from_utf8_lossy(reader.text()?.as_bytes()),
                faults: reader.u32()?,
            },
            1 => Self::Spawn { id: reader.u64()?, recipe: reader.recipe()? },
            2 => {
                let id = reader.u64()?;
                Self::Signal { id, signal: if reader.u8()? == 0 { Signal::TERM } else { Signal::KILL } }
            }
            _ => return Err(malformed()),
        })
    }
}

impl Reply {
    /// Appends the reply to others.
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        let mut writer = Writer(std::mem::take(bytes));
        match self {
            Self::Hello { version } => writer.u8(0).u64(0).u32(*version),
            Self::NotStarted { id, errno } => writer.u8(1).u64(*id).u32(errno.cast_unsigned()),
            Self::Ended { id, status } => writer.u8(2).u64(*id).u32(status.cast_unsigned()),
        };
        *bytes = writer.0;
    }

    /// Reads the replies of one message.
    pub(super) fn read_all(bytes: &[u8]) -> io::Result<Vec<Self>> {
        let mut reader = Reader(bytes);
        let mut replies = Vec::new();
        while !reader.0.is_empty() {
            let (tag, id, number) = (reader.u8()?, reader.u64()?, reader.u32()?);
            replies.push(match tag {
                0 => Self::Hello { version: number },
                1 => Self::NotStarted { id, errno: number.cast_signed() },
                2 => Self::Ended { id, status: number.cast_signed() },
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

    fn count(&mut self, count: usize) -> &mut Self {
        self.u64(count as u64)
    }

    fn text(&mut self, text: &OsStr) -> &mut Self {
        self.count(text.len());
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    fn recipe(&mut self, recipe: &Recipe<'_>) -> &mut Self {
        self.text(&recipe.file).text(&recipe.cwd).u8(recipe.inherits.into());
        self.count(recipe.argv.len());
        for word in &recipe.argv {
            self.text(word);
        }
        self.count(recipe.variables.len());
        for (name, value) in &recipe.variables {
            self.text(name).u8(value.is_some().into());
            if let Some(value) = value {
                self.text(value);
            }
        }
        self
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

    fn recipe(&mut self) -> io::Result<Recipe<'a>> {
        let (file, cwd) = (OsString::from(self.text()?), OsString::from(self.text()?));
        let inherits = self.u8()? != 0;
        let argv = (0..self.u64()?).map(|_| self.text()).collect::<io::Result<_>>()?;
        let variables = (0..self.u64()?).map(|_| self.variable()).collect::<io::Result<_>>()?;
        Ok(Recipe { file, argv, cwd, inherits, variables })
    }

    fn variable(&mut self) -> io::Result<(&'a OsStr, Option<&'a OsStr>)> {
        let name = self.text()?;
        let value = if self.u8()? == 0 { None } else { Some(self.text()?) };
        Ok((name, value))
    }
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a message that nobody sends")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests() -> Vec<Request<'static>> {
        let recipe = Recipe {
            file: "/bin/echo".into(),
            argv: vec![OsStr::new("echo"), OsStr::new(""), OsStr::from_bytes(b"\xff")],
            cwd: "/tmp".into(),
            inherits: true,
            variables: vec![(OsStr::new("A"), Some(OsStr::new("1"))), (OsStr::new("B"), None)],
        };
        vec![
            Request::Start { version: VERSION, mark: "mark".into(), faults: 3 },
            Request::Spawn { id: 7, recipe },
            Request::Signal { id: 7, signal: Signal::TERM },
            Request::Signal { id: 8, signal: Signal::KILL },
        ]
    }

    #[test]
    fn requests_arrive_as_they_were_sent_and_only_whole() {
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
    fn replies_arrive_together() {
        let replies = [
            Reply::Hello { version: 1 },
            Reply::NotStarted { id: 1, errno: 2 },
            Reply::Ended { id: u64::MAX, status: -1 },
        ];
        let mut bytes = Vec::new();
        for reply in &replies {
            reply.write(&mut bytes);
        }
        assert_eq!(Reply::read_all(&bytes).unwrap(), replies);
        Reply::read_all(&bytes[1..]).unwrap_err();
    }
}
