//! The server name in the first message of a TLS client.
//!
//! Read by hand: of the whole protocol one field matters, and the parsers that exist bring seven other crates.

/// The longest beginning of a connection that is searched.
pub(super) const MAX_BYTES: usize = 32 << 10;

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;

/// The result of reading the beginning of a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    /// More bytes are needed.
    Incomplete,
    /// A TLS client names a server, in lower case.
    Names(String),
    /// A TLS client names no server, or something else speaks.
    Nameless,
}

/// Reads the beginning of a connection.
pub(super) fn read(bytes: &[u8]) -> Beginning {
    match message(bytes) {
        Fragments::Incomplete if bytes.len() < MAX_BYTES => Beginning::Incomplete,
        Fragments::Whole(message) => server_name(&message).map_or(Beginning::Nameless, Beginning::Names),
        Fragments::Incomplete | Fragments::Other => Beginning::Nameless,
    }
}

enum Fragments {
    Incomplete,
    Whole(Vec<u8>),
    Other,
}

/// Joins the records that hold the first handshake message.
fn message(mut bytes: &[u8]) -> Fragments {
    let mut message = Vec::new();
    loop {
        if let Some(length) = length_of(&message)
            && message.len() >= length
        {
            message.truncate(length);
            return Fragments::Whole(message);
        }
        if message.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
            return Fragments::Other;
        }
        match bytes {
            [kind, ..] if *kind != HANDSHAKE => return Fragments::Other,
            [_, 3, _, high, low, rest @ ..] => {
                let length = usize::from(u16::from_be_bytes([*high, *low]));
                let Some((content, rest)) = rest.split_at_checked(length) else {
                    return Fragments::Incomplete;
                };
                if length == 0 {
                    return Fragments::Other;
                }
                message.extend_from_slice(content);
                bytes = rest;
            }
            [_, version, ..] if *version != 3 => return Fragments::Other,
            _ => return Fragments::Incomplete,
        }
    }
}

/// Returns the length of a handshake message with its head.
fn length_of(message: &[u8]) -> Option<usize> {
    let [_, a, b, c, ..] = message else { return None };
    usize::try_from(u32::from_be_bytes([0, *a, *b, *c])).ok().map(|length| length + 4)
}

fn server_name(message: &[u8]) -> Option<String> {
    let mut rest = Reader(message.get(4..)?);
    rest.take(2 + 32)?;
    rest.of_byte()?;
    rest.of_short()?;
    rest.of_byte()?;
    let mut extensions = Reader(rest.of_short()?);
    let mut found = None;
    while !extensions.0.is_empty() {
        let (kind, content) = (extensions.short()?, extensions.of_short()?);
        if kind == SERVER_NAME {
            // A server may read the first or the last of two, so none of them counts.
            if found.is_some() {
                return None;
            }
            found = Some(only_name(content)?);
        }
    }
    found
}

/// Returns the name of a list with one name.
fn only_name(content: &[u8]) -> Option<String> {
    let mut content = Reader(content);
    let mut list = Reader(content.of_short()?);
    let kind = list.take(1)?;
    let name = list.of_short()?;
    let is_alone = content.0.is_empty() && list.0.is_empty();
    (kind == [HOST_NAME] && is_alone).then(|| std::str::from_utf8(name).ok().map(str::to_ascii_lowercase))?
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn short(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    /// Takes bytes that follow their length, which is one byte.
    fn of_byte(&mut self) -> Option<&'a [u8]> {
        let length = usize::from(*self.take(1)?.first()?);
        self.take(length)
    }

    /// Takes bytes that follow their length, which is two bytes.
    fn of_short(&mut self) -> Option<&'a [u8]> {
        let length = usize::from(self.short()?);
        self.take(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_length(bytes: &[u8]) -> Vec<u8> {
        [&u16::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
    }

    fn extension(names: &[&str]) -> Vec<u8> {
        let list: Vec<u8> = names
            .iter()
            .flat_map(|name| [&[HOST_NAME][..], &with_length(name.as_bytes())].concat())
            .collect();
        [&[0, 0][..], &with_length(&with_length(&list))].concat()
    }

    fn hello(extensions: &[Vec<u8>]) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend([0, 0, 2, 0x13, 1, 1, 0]);
        body.extend(with_length(&extensions.concat()));
        let length = u32::try_from(body.len()).unwrap().to_be_bytes();
        [&[CLIENT_HELLO][..], &length[1..], &body].concat()
    }

    /// Splits a message into records of at most `size` bytes.
    fn records(message: &[u8], size: usize) -> Vec<u8> {
        message.chunks(size).flat_map(|part| [&[HANDSHAKE, 3, 1][..], &with_length(part)].concat()).collect()
    }

    #[test]
    fn the_name_is_found_whatever_the_fragments() {
        let message = hello(&[vec![0, 43, 0, 1, 0], extension(&["Git.example.org"])]);
        let expected = || Beginning::Names("git.example.org".to_owned());
        for size in 1..=message.len() {
            let bytes = records(&message, size);
            assert_eq!(read(&bytes), expected());
            assert_eq!(read(&[&bytes[..], b"more"].concat()), expected());
        }
        let bytes = records(&message, 10);
        for end in 0..bytes.len() {
            assert_eq!(read(&bytes[..end]), Beginning::Incomplete, "{end}");
        }
    }

    #[test]
    fn whatever_names_no_single_server_is_nameless() {
        let twice = [extension(&["a.example"]), extension(&["b.example"])];
        for message in [
            hello(&[]),
            hello(&twice),
            hello(&[extension(&["a.example", "b.example"])]),
            hello(&[extension(&[])]),
        ] {
            assert_eq!(read(&records(&message, 500)), Beginning::Nameless);
        }
        for bytes in [
            &b"GET / HTTP/1.1\r\n"[..],
            b"SSH-2.0-x",
            &[22, 2, 0, 0, 1, 1],
            &[22, 3, 1, 0, 0],
            &[22, 3, 1, 0, 1, 2],
        ] {
            assert_eq!(read(bytes), Beginning::Nameless);
        }
    }

    #[test]
    fn an_endless_message_ends_at_the_limit() {
        let endless =
            records(&[&[CLIENT_HELLO, 0xff, 0xff, 0xff][..], &vec![0; MAX_BYTES]].concat(), 16 << 10);
        assert_eq!(read(&endless[..MAX_BYTES]), Beginning::Nameless);
    }

    #[test]
    fn damaged_messages_never_panic() {
        let whole = records(&hello(&[extension(&["a.example"])]), 500);
        for at in 0..whole.len() {
            for value in [0, 1, 127, 255] {
                let mut damaged = whole.clone();
                damaged[at] = value;
                let _ = read(&damaged);
            }
        }
    }
}
