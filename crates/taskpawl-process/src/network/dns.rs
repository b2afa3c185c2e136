//! Questions to a name server, and its answers.
//!
//! Written by hand: a resolver for programs without a network reads one question and answers with one address or none. The crates for
//! DNS bring at least eight other crates.

use std::net::Ipv4Addr;

const HEAD: usize = 12;
const MAX_NAME: usize = 253;
const TYPE_A: u16 = 1;
const CLASS_INTERNET: u16 = 1;
/// The address of a name may have another owner in the next run.
const SECONDS: u32 = 1;

/// A question.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Question {
    /// The name in lower case, without a final dot.
    pub(super) name: String,
    kind: u16,
    id: [u8; 2],
    is_recursive: bool,
    /// The question as it was asked, to be repeated in the answer.
    bytes: Vec<u8>,
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The name has this address, and no other kind of record.
    Address(Ipv4Addr),
    /// There is no such name.
    NoSuchName,
    /// There is an answer, but it cannot be given.
    Failure,
}

impl Question {
    /// Reads a question; `None` if the message asks something else.
    pub(super) fn read(message: &[u8]) -> Option<Self> {
        let head: &[u8; HEAD] = message.get(..HEAD)?.try_into().ok()?;
        let [id1, id2, flags, _, count1, count2, ..] = *head;
        // A response, an operation other than a query, or several questions.
        if flags & 0b1111_1000 != 0 || [count1, count2] != [0, 1] {
            return None;
        }
        let mut name = String::new();
        let mut rest = message.get(HEAD..)?;
        loop {
            let (length, after) = rest.split_first()?;
            if *length == 0 {
                rest = after;
                break;
            }
            // Longer ones are pointers, which no question needs.
            let (label, after) = after.split_at_checked(usize::from(*length)).filter(|_| *length < 64)?;
            let label = std::str::from_utf8(label).ok()?.to_ascii_lowercase();
            name.push_str(if name.is_empty() { "" } else { "." });
            name.push_str(&label);
            rest = after;
            if name.len() > MAX_NAME {
                return None;
            }
        }
        let [kind1, kind2, class1, class2, rest @ ..] = rest else { return None };
        if u16::from_be_bytes([*class1, *class2]) != CLASS_INTERNET {
            return None;
        }
        let bytes = message[HEAD..message.len() - rest.len()].to_vec();
        let kind = u16::from_be_bytes([*kind1, *kind2]);
        Some(Self { name, kind, id: [id1, id2], is_recursive: flags & 1 == 1, bytes })
    }

    /// Returns the message with an answer.
    pub(super) fn answered(&self, answer: Answer) -> Vec<u8> {
        let (code, address) = match answer {
            Answer::Address(address) => (0, Some(address).filter(|_| self.kind == TYPE_A)),
            Answer::Failure => (2, None),
            Answer::NoSuchName => (3, None),
        };
        let mut message = self.id.to_vec();
        // A response, with authority for the names; recursion is available.
        message.extend([0b1000_0100 | u8::from(self.is_recursive), 0b1000_0000 | code]);
        message.extend([0, 1, 0, u8::from(address.is_some()), 0, 0, 0, 0]);
        message.extend(&self.bytes);
        if let Some(address) = address {
            // A pointer to the name in the question.
            message.extend([0xc0, HEAD.to_le_bytes()[0]]);
            message.extend(TYPE_A.to_be_bytes());
            message.extend(CLASS_INTERNET.to_be_bytes());
            message.extend(SECONDS.to_be_bytes());
            message.extend([0, 4]);
            message.extend(address.octets());
        }
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(name: &str, kind: u16) -> Vec<u8> {
        let mut message = vec![7, 8, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            message.push(u8::try_from(label.len()).unwrap());
            message.extend(label.as_bytes());
        }
        message.push(0);
        message.extend(kind.to_be_bytes());
        message.extend([0, 1]);
        message
    }

    #[test]
    fn an_address_answers_the_question_for_one() {
        let asked = Question::read(&question("Git.example.org", TYPE_A)).unwrap();
        assert_eq!(asked.name, "git.example.org");
        let answer = asked.answered(Answer::Address(Ipv4Addr::new(127, 64, 0, 1)));
        assert_eq!(answer[..12], [7, 8, 0x85, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
        assert!(answer.ends_with(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 127, 64, 0, 1]));
        let other = Question::read(&question("git.example.org", 28)).unwrap();
        assert_eq!(other.answered(Answer::Address(Ipv4Addr::LOCALHOST))[2..8], [0x85, 0x80, 0, 1, 0, 0]);
        assert_eq!(other.answered(Answer::NoSuchName)[3], 0x83);
        assert_eq!(other.answered(Answer::Failure)[3], 0x82);
    }

    #[test]
    fn other_messages_are_left_unanswered() {
        let whole = question("git.example.org", TYPE_A);
        for end in 0..whole.len() {
            assert_eq!(Question::read(&whole[..end]), None, "{end}");
        }
        for (at, value) in [(2, 0x80), (2, 0x28), (5, 2), (12, 64), (12, 0xc0)] {
            let mut other = whole.clone();
            other[at] = value;
            assert_eq!(Question::read(&other), None, "{at} {value}");
        }
        let long = ["a".repeat(63).as_str(); 5].join(".");
        assert_eq!(Question::read(&question(&long, TYPE_A)), None);
    }
}
