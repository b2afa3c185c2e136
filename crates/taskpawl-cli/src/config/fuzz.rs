//! Hostile input for the reader of configuration files.

#[cfg(test)]
mod tests;

use std::path::Path;

use super::Config;
use super::setting::Layer;
use crate::environment::Environment;

pub(crate) fn file(text: &str) -> bool {
    let mut config = Config::defaults(&Environment::read());
    let read = config.read_text(Path::new("taskpawl.toml"), text, Layer::Project);
    if let Err(error) = &read {
        assert!(!error.to_string().is_empty() && !error.hint().is_empty());
    }
    read.is_ok()
}
