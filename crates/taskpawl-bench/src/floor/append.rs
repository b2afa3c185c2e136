//! Minimum cost of a durable change: appends a page to a file and syncs it.

use std::io::Write as _;
use std::path::Path;

use crate::Failure;
use crate::measure::{Whose, measure};
use crate::sample::Sample;

/// Size of each append, in bytes.
const PAGE: usize = 4096;

/// Appends `times` pages to a new file, each with its own sync, and returns the cost.
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
