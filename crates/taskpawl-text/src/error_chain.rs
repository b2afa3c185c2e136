//! An error with its causes.

use std::error::Error;

/// Returns the message of an error and of its causes: `outer: cause: cause of the cause`.
///
/// A cause that the text has already is left out: many errors of other crates repeat their source.
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let message = cause.to_string();
        let message = message.trim_end();
        // Some errors append their source to their own message in other words around it, so the whole text is searched.
        if !text.contains(message) {
            text.push_str(": ");
            text.push_str(message);
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    #[derive(Debug)]
    struct Failure(&'static str, Option<Box<Failure>>);

    impl fmt::Display for Failure {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Failure {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as _)
        }
    }

    fn chain(messages: &[&'static str]) -> String {
        let chain =
            messages.iter().rev().fold(None, |cause, message| Some(Box::new(Failure(message, cause))));
        error_chain(chain.unwrap().as_ref())
    }

    #[test]
    fn causes_follow_their_error_once() {
        assert_eq!(chain(&["alone"]), "alone");
        assert_eq!(
            chain(&["cannot start", "no such file", "os error 2\n"]),
            "cannot start: no such file: os error 2"
        );
        assert_eq!(
            chain(&["client error: refused, when starting", "refused"]),
            "client error: refused, when starting"
        );
    }
}
