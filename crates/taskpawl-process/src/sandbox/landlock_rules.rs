use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, make_bitflags,
};

use super::mounts::Covered;
use super::places::{Places, exclude_paths, is_beneath};
use crate::faults::{self, Fault};
use crate::profile::NetworkWall;
use crate::sandbox::refusal::Refusal;

/// The newest Landlock version whose rules were tested. The `landlock` crate drops the rules that an older kernel does not know.
const NEWEST: ABI = ABI::V7;

/// The last version without rules for the network and for signals.
const FILES_ALONE: ABI = ABI::V3;

/// Directories that are never opened as a whole: they hold devices with all data of the machine, and other processes.
const SPECIAL: [&str; 2] = ["/dev", "/proc"];

/// Devices without data of any user.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// The accesses that Landlock shall allow.
pub(super) struct LandlockRules<'a> {
    pub(super) places: &'a Places,
    /// The result of covering paths by mounts; `None` without a mount namespace.
    pub(super) covered: Option<Covered>,
    pub(super) network: NetworkWall,
}

impl LandlockRules<'_> {
    /// Restricts this process for good. Returns the Landlock version of the kernel.
    ///
    /// An older kernel is no error: its missing protections are added to `gaps`. Only a kernel without any Landlock is refused.
    pub(super) fn raise(&self, gaps: &mut Vec<String>) -> Result<u32, Refusal> {
        if faults::is_on(Fault::NoLandlock) {
            return Ok(0);
        }
        let status = self
            .rules()
            .and_then(RulesetCreated::restrict_self)
            .map_err(|error| Refusal::step("restricting itself by Landlock", error))?;
        let advice = "use Linux 5.13 or newer and add `landlock` to the kernel parameter `lsm=`";
        let version = match status.landlock {
            LandlockStatus::NotEnabled => return Err(Refusal::new("Landlock is not enabled", advice)),
            LandlockStatus::NotImplemented => return Err(Refusal::new("the kernel has no Landlock", advice)),
            LandlockStatus::Available { effective_abi, kernel_abi } => {
                kernel_abi.unwrap_or(effective_abi as i32)
            }
        };
        if status.ruleset == RulesetStatus::NotEnforced {
            return Err(Refusal::new("Landlock is not enforced", advice));
        }
        let version = if faults::is_on(Fault::OldLandlock) { FILES_ALONE as i32 } else { version };
        let version = version.cast_unsigned();
        gaps.extend(self.gaps(version));
        Ok(version)
    }

    fn gaps(&self, version: u32) -> Vec<String> {
        let needs = |what: &str, version| format!("{what} (needs version {version} of Landlock)");
        let mut gaps = Vec::new();
        if version < 3 && self.covered.is_none() {
            gaps.push(needs("files elsewhere can be truncated", 3));
        }
        if version < 6 {
            gaps.push(needs("other programs of the user can receive signals", 6));
            if self.network == NetworkWall::Open {
                gaps.push(needs("abstract sockets of other programs can be reached", 6));
            }
        }
        gaps
    }

    fn rules(&self) -> Result<RulesetCreated, RulesetError> {
        let mut rules = Ruleset::default().handle_access(AccessFs::from_all(NEWEST))?;
        // The crate leaves out what the kernel does not know.
        let is_old = faults::is_on(Fault::OldLandlock);
        if !is_old && !faults::is_on(Fault::NoScope) {
            rules = rules.scope(Scope::from_all(NEWEST))?;
        }
        if !is_old && self.network == NetworkWall::Filter {
            rules = rules.handle_access(AccessNet::from_all(NEWEST))?;
        }
        let mut rules = rules.create()?;
        for (path, access) in self.accesses() {
            // A path that was removed meanwhile, or that this user cannot open, is unreachable for programs as well.
            let Ok(place) = PathFd::new(&path) else { continue };
            rules = rules.add_rule(PathBeneath::new(place, for_kind(&path, access)))?;
        }
        Ok(rules)
    }

    /// Returns whether a hidden path needs no Landlock hole, because a mount covers it.
    ///
    /// Only paths that administrators alone can create or replace qualify, and only if the mount has succeeded.
    fn is_left_to_mounts(&self, hidden: &Path) -> bool {
        let covered = self.covered.as_ref();
        let is_covered = covered.is_some_and(|covered| !is_beneath(hidden, &covered.bare));
        is_covered && self.places.administered.iter().any(|path| path == hidden)
    }

    /// Returns the paths to open, sorted. A path is left out if a directory above it opens as much.
    fn accesses(&self) -> Vec<(PathBuf, BitFlags<AccessFs>)> {
        let special = SPECIAL.map(PathBuf::from);
        let copies: Vec<&PathBuf> = self.covered.iter().flat_map(|covered| &covered.copies).collect();
        let hidden = self.places.hidden.iter().filter(|path| !self.is_left_to_mounts(path));
        let holes: Vec<PathBuf> = hidden.chain(&special).cloned().collect();
        let mut accesses = Vec::new();
        for root in &self.places.read {
            let (kept, opened) = if root.starts_with("/dev") {
                (vec![root.clone()], vec![])
            } else {
                exclude_paths(root, &holes)
            };
            accesses.extend(kept.into_iter().map(|path| (path, reading())));
            if self.covered.is_some() {
                // Landlock rules apply to everything beneath: the right to list is inherited by hidden directories, too. Mounts cover
                // those, so a listing shows nothing.
                accesses.extend(opened.into_iter().map(|path| (path, AccessFs::ReadDir.into())));
            }
        }
        // Landlock cannot subtract a path from an open directory. A guarded path without a mount is therefore left out together with its
        // parent directories. The right to create files in a directory includes the right to replace its entries.
        let guarded = self.places.guarded.iter().filter(|_| self.covered.is_none());
        let holes: Vec<PathBuf> = special.iter().chain(guarded).cloned().collect();
        for root in &self.places.write {
            let (kept, _) = if root.starts_with("/dev") {
                (vec![root.clone()], vec![])
            } else {
                exclude_paths(root, &holes)
            };
            accesses.extend(kept.into_iter().map(|path| (path, reading() | writing())));
        }
        accesses.extend([("/proc".into(), reading()), ("/dev".into(), AccessFs::ReadDir.into())]);
        accesses.extend(DEVICES.map(|path| (path.into(), using_devices())));
        let private = self.covered.iter().flat_map(|covered| &covered.private);
        accesses.extend(private.map(|path| (path.clone(), reading() | writing())));
        accesses.extend(copies.into_iter().map(|path| (path.clone(), reading())));
        let own = self.covered.iter().flat_map(|covered| &covered.devices);
        accesses.extend(own.map(|path| (path.into(), reading() | writing() | using_devices())));
        without_inner(accesses)
    }
}

/// Drops paths that lie in another path which opens as much.
fn without_inner(accesses: Vec<(PathBuf, BitFlags<AccessFs>)>) -> Vec<(PathBuf, BitFlags<AccessFs>)> {
    let mut opened: BTreeMap<PathBuf, BitFlags<AccessFs>> = BTreeMap::new();
    for (path, access) in accesses {
        *opened.entry(path).or_default() |= access;
    }
    let is_inner = |path: &Path, access: BitFlags<AccessFs>| {
        let mut above = path.ancestors().skip(1).filter_map(|above| opened.get(above));
        above.any(|outer| outer.contains(access))
    };
    let outer = opened.iter().filter(|(path, access)| !is_inner(path, **access));
    outer.map(|(path, access)| (path.clone(), *access)).collect()
}

/// Returns a Landlock ruleset that denies nothing, but isolates the program that applies it from programs of other calls.
///
/// The kernel lets a process trace only processes in its own Landlock domain and in nested ones. The same holds for reading their
/// descriptors and memory. Two programs that each apply this ruleset are in sibling domains. Returns `None` without Landlock.
pub(super) fn own_room() -> Option<OwnedFd> {
    if faults::is_on(Fault::NoLandlock) || faults::is_on(Fault::SharedRoom) {
        return None;
    }
    // A ruleset must handle at least one access. Creating devices is denied to programs anyway. `Refer` is listed so that it can be granted
    // for `/`: a ruleset that does not handle it denies all links and renames between directories.
    let rules = Ruleset::default().handle_access(make_bitflags!(AccessFs::{MakeChar | Refer})).ok()?;
    let rules = rules.create().ok()?;
    let everywhere = PathBeneath::new(PathFd::new("/").ok()?, AccessFs::Refer);
    rules.add_rule(everywhere).ok()?.into()
}

fn reading() -> BitFlags<AccessFs> {
    AccessFs::from_read(NEWEST)
}

/// Writing without creating devices or sending commands to them.
fn writing() -> BitFlags<AccessFs> {
    AccessFs::from_write(NEWEST) & !make_bitflags!(AccessFs::{MakeChar | MakeBlock | IoctlDev})
}

fn using_devices() -> BitFlags<AccessFs> {
    make_bitflags!(AccessFs::{ReadFile | WriteFile | Truncate | IoctlDev})
}

/// Drops the accesses that are only valid for directories. The kernel rejects a rule that grants them on a file.
fn for_kind(path: &Path, access: BitFlags<AccessFs>) -> BitFlags<AccessFs> {
    if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::profile::Profile;

    #[test]
    fn what_lies_in_an_opened_place_takes_no_rule() {
        let places = |paths: &[(&str, BitFlags<AccessFs>)]| {
            let accesses = paths.iter().map(|(path, access)| (path.into(), *access)).collect();
            let left = without_inner(accesses).into_iter();
            left.map(|(path, access)| (path.to_str().unwrap().to_owned(), access)).collect::<Vec<_>>()
        };
        let list = BitFlags::from(AccessFs::ReadDir);
        let left = places(&[
            ("/a/b", reading()),
            ("/a", reading()),
            ("/ab", list),
            ("/a/c", writing()),
            ("/a/c/d", list),
        ]);
        assert_eq!(left, [("/a".into(), reading()), ("/a/c".into(), writing()), ("/ab".into(), list)]);
        let left = places(&[("/a", list), ("/a/b", reading()), ("/a", writing())]);
        assert_eq!(left, [("/a".into(), list | writing()), ("/a/b".into(), reading())]);
    }

    #[test]
    fn only_what_mounts_cover_and_administrators_make_takes_no_hole() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        for name in ["home/seen", "system/seen"] {
            std::fs::create_dir_all(home.join(name)).unwrap();
        }
        let [home, system] = ["home", "system"].map(|name| home.join(name));
        let (secret, password) = (home.join("secret"), system.join("shadow"));
        let profile = Profile {
            read: vec![home.clone(), system.clone()],
            hidden: vec![secret, password.clone()],
            administered: vec![password.clone()],
            ..Profile::default()
        };
        let places = Places::of(&profile);
        let is_open = |covered, path: &Path| {
            let wall = LandlockRules { places: &places, covered, network: NetworkWall::Open };
            let reads = |access: BitFlags<AccessFs>| access.contains(AccessFs::ReadFile);
            wall.accesses().iter().any(|(opened, access)| opened == path && reads(*access))
        };
        let covered = || Some(Covered::default());
        let bare = || Some(Covered { bare: vec![password.clone()], ..Covered::default() });
        assert!(is_open(covered(), &system) && !is_open(covered(), &home));
        assert!(!is_open(bare(), &system) && !is_open(None, &system));
        for covered in [covered(), bare(), None] {
            assert!(is_open(covered, &home.join("seen")));
        }
    }

    #[test]
    fn what_mounts_do_not_cover_is_not_written_either() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        for name in [".cache", ".state/own", "dots/other", "dots/config/own"] {
            std::fs::create_dir_all(home.join(name)).unwrap();
        }
        symlink("dots/config", home.join(".config")).unwrap();
        let profile = Profile {
            write: vec![home.clone()],
            read_only: vec![home.join(".config/own")],
            guarded: vec![home.join(".config/own"), home.join(".state/own")],
            ..Profile::default()
        };
        let places = Places::of(&profile);
        let written = |covered| -> Vec<String> {
            let wall = LandlockRules { places: &places, covered, network: NetworkWall::Open };
            let paths = wall.accesses().into_iter().filter(|(_, access)| access.contains(AccessFs::MakeReg));
            let paths = paths.filter_map(|(path, _)| Some(path.strip_prefix(&home).ok()?.to_owned()));
            paths.map(|path| path.to_str().unwrap().to_owned()).collect()
        };
        assert_eq!(written(None), [".cache", "dots/other"]);
        assert_eq!(written(Some(Covered::default())), [""]);
        let mut gaps = Vec::new();
        places.describe_uncovered("none", &mut gaps);
        let gaps = gaps.join("\n").replace(home.to_str().unwrap(), "");
        insta::assert_snapshot!(gaps, @"nothing can be created next to `/.config`, `/dots/config/own`, `/.state/own`: none");
    }
}
