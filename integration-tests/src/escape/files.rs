//! Bypass cases: writing to forbidden places.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, XattrFlags, linkat, open, setxattr};

use super::{Promise, Way, World};

pub(super) const WAYS: &[Way] = &[
    Way::held("write-outside", |world| create(&world.outside.join("new"))),
    Way::held("append-outside", |world| append(&world.outside.join("victim"))),
    Way::held("truncate-outside", |world| {
        OpenOptions::new().write(true).truncate(true).open(world.outside.join("emptied")).map(drop)
    }),
    Way::held("unlink-outside", |world| fs::remove_file(world.outside.join("removed"))),
    Way::held("rename-outside", |world| {
        fs::rename(world.outside.join("renamed"), world.outside.join("renamed-too"))
    }),
    Way::held("mkdir-outside", |world| fs::create_dir(world.outside.join("directory"))),
    Way::held("rmdir-outside", |world| fs::remove_dir(world.outside.join("empty"))),
    Way::held("symlink-outside", |world| symlink("/", world.outside.join("link"))),
    Way::held("fifo-outside", fifo),
    Way::held("unnamed-file-outside", unnamed),
    Way::held("move-out", |world| {
        fs::write(world.project.join("moved"), "x")?;
        fs::rename(world.project.join("moved"), world.outside.join("moved"))
    }),
    Way::held("link-in-and-write", link_in),
    Way::held("write-through-link", |world| {
        let link = world.project.join("way-out");
        let _ = fs::remove_file(&link);
        symlink(world.outside.join("through-link"), &link)?;
        append(&link)
    }),
    Way::held("write-through-proc-root", |world| append(&through_proc(&world.outside.join("through-proc")))),
    Way::held("write-home", |world| append(&world.home.join(".bashrc"))),
    Way::held("write-authorized-keys", |world| append(&world.home.join(".ssh/authorized_keys"))),
    Way::held("write-shared-temporary", |_| {
        let path = PathBuf::from(format!("/var/tmp/taskpawl-escape-{}", std::process::id()));
        create(&path)?;
        fs::remove_file(path)
    }),
    // `/dev/shm` may exist as a private mount of the run. So a successful write proves nothing, and the harness checks whether
    // other processes see the file.
    Way::held("write-shared-memory", |world| create(&world.shared_memory)).promised(Promise::SeenByHarness),
    // The store is opened but not written: the control runs without the sandbox and must not destroy its own store.
    Way::held("open-store-for-writing", |world| OpenOptions::new().append(true).open(&world.store).map(drop)),
    Way::held("link-store", |world| {
        let link = world.store.with_extension("linked");
        fs::hard_link(&world.store, &link)?;
        fs::remove_file(link)
    }),
    Way::held("write-beside-store", |world| create(&world.store.with_extension("new"))),
    Way::held("write-policy", |world| create(&world.config.join("policy.toml"))),
    Way::held("write-configuration", |world| append(&world.config.join("config.toml"))),
    Way::held("write-git-hook", |world| create(&world.project.join(".git/hooks/pre-commit")))
        .promised(Promise::HeldByMounts),
    Way::held("write-git-configuration", |world| append(&world.project.join(".git/config")))
        .promised(Promise::HeldByMounts),
    Way::held("write-configuration-of-submodule", |world| {
        append(&world.project.join(".git/modules/m/config"))
    })
    .promised(Promise::HeldByMounts),
    Way::held("write-configuration-of-repository-within", |world| {
        append(&world.project.join("lib/.git/config"))
    })
    .promised(Promise::HeldByMounts),
    Way::held("replace-git-configuration", |world| {
        fs::write(world.project.join("config"), "[core]\nfsmonitor = ./evil\n")?;
        fs::rename(world.project.join("config"), world.project.join(".git/config"))
    })
    .promised(Promise::HeldByMounts),
    Way::held("replace-git-directory", |world| {
        fs::rename(world.project.join(".git"), world.project.join("git-before"))?;
        fs::create_dir_all(world.project.join(".git/hooks"))?;
        create(&world.project.join(".git/hooks/pre-commit"))
    })
    .promised(Promise::HeldByMounts),
    Way::held("write-project-id", |world| append(&world.project.join(".taskpawl/project.json")))
        .promised(Promise::HeldByMounts),
    Way::held("replace-project-directory", |world| {
        fs::rename(world.project.join(".taskpawl"), world.project.join("taskpawl-before"))?;
        fs::create_dir(world.project.join(".taskpawl"))?;
        create(&world.project.join(".taskpawl/project.json"))
    })
    .promised(Promise::HeldByMounts),
    Way::held("write-servers", |world| append(&world.project.join(".mcp.json")))
        .promised(Promise::HeldByMounts),
    Way::held("write-project-configuration", |world| append(&world.project.join("taskpawl.toml")))
        .promised(Promise::HeldByMounts),
    Way::held("chmod-outside", |world| {
        fs::set_permissions(world.outside.join("victim"), fs::Permissions::from_mode(0o600))
    })
    .promised(Promise::HeldByMounts),
    Way::held("touch-outside", |world| {
        let file = File::open(world.outside.join("victim"))?;
        file.set_times(fs::FileTimes::new().set_modified(std::time::SystemTime::UNIX_EPOCH))
    })
    .promised(Promise::HeldByMounts),
    Way::held("attribute-outside", |world| {
        Ok(setxattr(world.outside.join("victim"), "user.escape", b"1", XattrFlags::empty())?)
    })
    .promised(Promise::HeldByMounts),
];

fn create(path: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).create(true).truncate(true).open(path)?.write_all(b"escaped\n")
}

fn append(path: &Path) -> io::Result<()> {
    OpenOptions::new().append(true).open(path)?.write_all(b"\n# escaped\n")
}

fn through_proc(path: &Path) -> PathBuf {
    Path::new("/proc/self/root").join(path.strip_prefix("/").unwrap_or(path))
}

fn fifo(world: &World) -> io::Result<()> {
    let path = world.outside.join("fifo");
    Ok(rustix::fs::mknodat(CWD, path, rustix::fs::FileType::Fifo, Mode::RUSR, 0)?)
}

fn unnamed(world: &World) -> io::Result<()> {
    let mode = Mode::RUSR | Mode::WUSR;
    let file = open(&world.outside, OFlags::TMPFILE | OFlags::WRONLY, mode)?;
    File::from(file).write_all(b"escaped")
}

/// Gives a file outside of the project a name inside, where writing is allowed.
fn link_in(world: &World) -> io::Result<()> {
    let inside = world.project.join("linked");
    let _ = fs::remove_file(&inside);
    linkat(CWD, world.outside.join("to-be-linked"), CWD, &inside, AtFlags::empty())?;
    append(&inside)
}
