//! Limits on the messages of a server, checked before the messages are parsed.

/// Maximum size of a message, in bytes.
pub(super) const MAX_MESSAGE_BYTES: usize = 8 << 20;

/// Maximum number of values in a message: in memory each takes far more than the two bytes that it needs as text.
const MAX_VALUES: usize = 25_000;

/// Maximum size of all descriptions and schemas of a server's tools, in bytes.
const MAX_CATALOGUE_BYTES: usize = 4 << 20;

/// Maximum output of a server that is not a message, in bytes. Some servers print a greeting.
pub(super) const MAX_NOISE_BYTES: usize = 1 << 20;

/// Maximum standard error of a server over its whole life, in bytes.
pub(super) const MAX_STDERR_BYTES: u64 = 64 << 20;

/// Checks the size and the number of values of a message.
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

/// Counts the values of a JSON text, on which its size in memory depends. Commas and opening brackets within strings
/// do not count.
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

/// The size of a server's catalogue, summed over any number of pages.
#[derive(Debug, Default)]
pub(super) struct CatalogueSize {
    bytes: usize,
    values: usize,
}

impl CatalogueSize {
    /// Adds a page or a tool.
    ///
    /// # Errors
    /// The catalogue has become too large.
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
