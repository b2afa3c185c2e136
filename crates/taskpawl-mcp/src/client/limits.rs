//! What a server may send: its messages are looked at before they are read.

/// The largest message.
pub(super) const MAX_MESSAGE_BYTES: usize = 8 << 20;

/// How many values a message may have: each takes far more memory than the two bytes that it needs to be written.
const MAX_VALUES: usize = 25_000;

/// How much of what a server says about all of its tools is taken.
const MAX_CATALOGUE_BYTES: usize = 4 << 20;

/// How much a server may print that is no message. Some print a greeting.
pub(super) const MAX_NOISE_BYTES: usize = 1 << 20;

/// How much a server may write to its standard error while it runs.
pub(super) const MAX_STDERR_BYTES: u64 = 64 << 20;

/// Says what is wrong with the size of a message.
pub(super) fn check_size(message: &[u8]) -> Result<(), String> {
    if message.len() > MAX_MESSAGE_BYTES {
        return Err(too_long());
    }
    if values(message) > MAX_VALUES {
        Err(format!("it sent a message of more than {MAX_VALUES} values"))
    } else {
        Ok(())
    }
}

/// Counts the values of a JSON text, whose size in memory depends on that.
fn values(text: &[u8]) -> usize {
    let (mut values, mut is_text, mut is_escaped) = (0_usize, false, false);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            b',' | b'[' | b'{' if !is_text => values += 1,
            _ => {}
        }
    }
    values
}

/// Adds up what a server says about its tools, which comes in as many messages as it likes.
#[derive(Debug, Default)]
pub(super) struct CatalogueSize {
    bytes: usize,
    values: usize,
}

impl CatalogueSize {
    /// Takes in a part; says what is wrong with the whole when that is too much.
    pub(super) fn add(&mut self, part: &[u8]) -> Result<(), String> {
        self.bytes += part.len();
        self.values += values(part);
        if self.bytes > MAX_CATALOGUE_BYTES || self.values > MAX_VALUES {
            let most = MAX_CATALOGUE_BYTES >> 20;
            return Err(format!("it says more than {most} MiB or {MAX_VALUES} values about its tools"));
        }
        Ok(())
    }
}

pub(super) fn too_long() -> String {
    format!("it sent a message of more than {} MiB", MAX_MESSAGE_BYTES >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_of_texts() {
        let text = format!("{{\"a\": \"{}\\\"{}\"}}", "[,".repeat(MAX_VALUES), "{".repeat(MAX_VALUES));
        assert_eq!(check_size(text.as_bytes()), Ok(()));
        let list = format!("[{}1]", "1,".repeat(MAX_VALUES));
        assert_eq!(check_size(list.as_bytes()).unwrap_err(), "it sent a message of more than 25000 values");
        let long = vec![b' '; MAX_MESSAGE_BYTES + 1];
        assert_eq!(check_size(&long).unwrap_err(), "it sent a message of more than 8 MiB");
    }
}
