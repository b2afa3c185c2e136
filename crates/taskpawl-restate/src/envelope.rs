//! Signatures of calls: a worker runs nothing that a coordinator with a trusted key did not send.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde::{Deserialize, Serialize};
use taskpawl::SentCall;
use taskpawl::model::value::Timestamp;

use crate::service::PROTOCOL;

/// The age at which a call that has not begun expires. Restate keeps results for as long.
pub const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// The first characters of a public key in text form.
const KEY_PREFIX: &str = "taskpawl-ed25519-";

/// The private key of a coordinator.
#[derive(Debug)]
pub struct SigningKey(Ed25519KeyPair);

/// A key that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// Not a private key.
    #[error("not a private key of taskpawl")]
    Private,
    /// Not a public key.
    #[error(
        "not a public key: expected `taskpawl-ed25519-` and 43 characters, as `taskpawl workers key` prints it"
    )]
    Public,
    /// The system has no random numbers.
    #[error("the system gave no random numbers")]
    Random,
}

/// A signed call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// The version of the protocol.
    pub protocol: u32,
    /// The service of the worker that may run it.
    pub service: String,
    /// The time after which it does not begin any more, in seconds since 1970.
    pub expires: i64,
    /// The public key of the coordinator.
    pub sender: String,
    /// The call as JSON text, exactly as it was signed.
    pub call: String,
    /// The Ed25519 signature in base64.
    pub signature: String,
}

/// The reason for which a worker refuses a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvelopeError {
    /// Another protocol.
    #[error("protocol {0} is not spoken here")]
    Protocol(u32),
    /// Meant for another worker.
    #[error("the call is for `{0}`")]
    Worker(String),
    /// The key is not trusted.
    #[error("the key of the coordinator is not trusted here: `taskpawl-worker trust {0}`")]
    Untrusted(String),
    /// The signature does not belong to the content.
    #[error("the signature is not valid")]
    Signature,
    /// The call is too old.
    #[error("the call has expired")]
    Expired,
    /// The content is not a call.
    #[error("the content is not a call: {0}")]
    Content(String),
}

impl SigningKey {
    /// Returns a new random key, in the form in which it is kept in a file.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn generate() -> Result<Vec<u8>, KeyError> {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new());
        document.map(|document| document.as_ref().to_vec()).map_err(|_| KeyError::Random)
    }

    /// Reads a key.
    ///
    /// # Errors
    /// It is none.
    pub fn read(file: &[u8]) -> Result<Self, KeyError> {
        Ed25519KeyPair::from_pkcs8(file).map(Self).map_err(|_| KeyError::Private)
    }

    /// Returns the public key as text.
    pub fn public(&self) -> String {
        format!("{KEY_PREFIX}{}", URL_SAFE_NO_PAD.encode(self.0.public_key().as_ref()))
    }

    /// Signs a call for a worker.
    ///
    /// # Panics
    /// Never: the call is plain data.
    pub fn seal(&self, service: &str, call: &SentCall, now: Timestamp) -> Envelope {
        let mut envelope = Envelope {
            protocol: PROTOCOL,
            service: service.to_owned(),
            expires: (now + MAX_AGE).timestamp(),
            sender: self.public(),
            call: serde_json::to_string(call).expect("BUG: a call is plain data"),
            signature: String::new(),
        };
        envelope.signature = URL_SAFE_NO_PAD.encode(self.0.sign(envelope.signed_text().as_bytes()).as_ref());
        envelope
    }
}

/// Checks the form of a public key.
fn public_bytes(key: &str) -> Result<Vec<u8>, KeyError> {
    let text = key.strip_prefix(KEY_PREFIX).ok_or(KeyError::Public)?;
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| KeyError::Public)?;
    if bytes.len() == 32 { Ok(bytes) } else { Err(KeyError::Public) }
}

impl Envelope {
    /// Checks a public key in text form.
    ///
    /// # Errors
    /// It is none.
    pub fn check_key(key: &str) -> Result<(), KeyError> {
        public_bytes(key).map(drop)
    }

    /// Returns the call if a trusted coordinator has signed it for this worker.
    ///
    /// # Errors
    /// The call must not run. Nothing of it was used before.
    pub fn open(&self, service: &str, trusted: &[String], now: Timestamp) -> Result<SentCall, EnvelopeError> {
        if self.protocol != PROTOCOL {
            return Err(EnvelopeError::Protocol(self.protocol));
        }
        if self.service != service {
            return Err(EnvelopeError::Worker(self.service.clone()));
        }
        let Some(key) = trusted.iter().find(|key| **key == self.sender) else {
            return Err(EnvelopeError::Untrusted(self.sender.clone()));
        };
        let key = public_bytes(key).map_err(|_| EnvelopeError::Untrusted(self.sender.clone()))?;
        let signature = URL_SAFE_NO_PAD.decode(&self.signature).map_err(|_| EnvelopeError::Signature)?;
        let key = UnparsedPublicKey::new(&ED25519, key);
        key.verify(self.signed_text().as_bytes(), &signature).map_err(|_| EnvelopeError::Signature)?;
        if self.expires <= now.timestamp() {
            return Err(EnvelopeError::Expired);
        }
        serde_json::from_str(&self.call).map_err(|error| EnvelopeError::Content(error.to_string()))
    }

    /// Returns the signed text. The call comes last and the other fields have no line breaks, so that no two envelopes share a text.
    fn signed_text(&self) -> String {
        let Self { protocol, service, expires, sender, call, .. } = self;
        format!("taskpawl call {protocol}\n{service}\n{expires}\n{sender}\n{call}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call() -> SentCall {
        serde_json::from_value(json!({
            "ticket": {"key": "p/t/c/0", "start": 1}, "run": "r", "task": "t", "attempt": 1, "generation": 0, "round": 0,
            "call": {"id": "c", "spec": {"toolName": "exec"}, "origin": "plan", "body": {"status": "running", "attempts": 1}},
            "args": {"argv": ["true"]}, "isRepeatable": false,
        }))
        .unwrap()
    }

    fn key() -> SigningKey {
        SigningKey::read(&SigningKey::generate().unwrap()).unwrap()
    }

    #[test]
    fn only_an_unchanged_call_of_a_trusted_coordinator_opens() {
        let (key, other) = (key(), key());
        let trusted = [key.public()];
        let now = Timestamp::default();
        let sealed = key.seal("s", &call(), now);
        assert_eq!(sealed.open("s", &trusted, now), Ok(call()));
        let refused = |envelope: &Envelope| envelope.open("s", &trusted, now).unwrap_err();
        assert_eq!(
            refused(&Envelope { signature: String::new(), ..sealed.clone() }),
            EnvelopeError::Signature
        );
        assert!(matches!(refused(&other.seal("s", &call(), now)), EnvelopeError::Untrusted(_)));
        let forged = Envelope { sender: key.public(), ..other.seal("s", &call(), now) };
        assert_eq!(refused(&forged), EnvelopeError::Signature);
        let altered = Envelope { call: sealed.call.replace("true", "false"), ..sealed.clone() };
        assert_eq!(refused(&altered), EnvelopeError::Signature);
        let later = Envelope { expires: sealed.expires + 1, ..sealed.clone() };
        assert_eq!(refused(&later), EnvelopeError::Signature);
        assert!(matches!(sealed.open("other", &trusted, now), Err(EnvelopeError::Worker(_))));
        assert!(matches!(refused(&Envelope { protocol: 2, ..sealed.clone() }), EnvelopeError::Protocol(2)));
        assert_eq!(sealed.open("s", &trusted, now + MAX_AGE), Err(EnvelopeError::Expired));
        assert!(matches!(sealed.open("s", &[], now), Err(EnvelopeError::Untrusted(_))));
    }

    #[test]
    fn keys_are_checked() {
        assert_eq!(Envelope::check_key(&key().public()), Ok(()));
        assert_eq!(Envelope::check_key("taskpawl-ed25519-short"), Err(KeyError::Public));
        assert_eq!(SigningKey::read(b"none").unwrap_err(), KeyError::Private);
    }
}
