//! The place of the Landlock rules in programs that are built without starting programs.

use std::os::fd::OwnedFd;

use super::mounts::Covered;
use super::places::Places;
use crate::profile::NetworkWall;
use crate::sandbox::refusal::Refusal;

pub(super) struct LandlockRules<'a> {
    pub(super) places: &'a Places,
    pub(super) covered: Option<Covered>,
    pub(super) network: NetworkWall,
}

impl LandlockRules<'_> {
    #[expect(clippy::unused_self, reason = "the signature of the rules")]
    pub(super) fn raise(&self, _gaps: &mut Vec<String>) -> Result<u32, Refusal> {
        Err(Refusal::new("this program is built without sandboxes", "build it with the feature `programs`"))
    }
}

pub(super) fn own_room() -> Option<OwnedFd> {
    None
}
