//! The place of the filter of system calls in programs that are built without starting programs.

use crate::profile::NetworkWall;
use crate::sandbox::refusal::Refusal;

pub(super) fn filter(_network: NetworkWall, _has_mounts: bool) -> Result<(), Refusal> {
    Err(Refusal::new("this program is built without sandboxes", "build it with the feature `programs`"))
}
