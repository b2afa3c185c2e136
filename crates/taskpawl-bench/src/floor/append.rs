//! The least that makes a change durable: a page is appended to a file, and synced.

use std::io::Write as _;
use std::path::Path;

use crate::Failure;
use crate::measure::{Whose, measure};
use crate::sample::Sample;

/// What is appended each time, in bytes.
const PAGE: usize = 4096;

/// Appends `times` pages to a new file, each synced for itself, and returns what that cost.
pub(crate) fn run(path: &Path, times: usize) -> Result<Sample, Failure> {
    let mut file = std::fs::File::create(path)?;
    let page = [1; PAGE];
    let append = || -> Result<(), Failure> {
        for _ in 0..times {
            file.write_all(&page)?;
            file.sync_data()?;
        }
        Ok(())
    };
    Ok(measure(Whose::Mine, append)?.1)
}
