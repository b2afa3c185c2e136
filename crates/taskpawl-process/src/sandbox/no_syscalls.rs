//! The place of the filter of system calls in programs that are built without starting programs.

use crate::profile::Enforcement;
use crate::sandbox::refusal::Refusal;

pub(super) fn filter(_: &Enforcement) -> Result<(), Refusal> {
    Err(Refusal::new("this program is built without sandboxes", "build it with the feature `programs`"))
}
