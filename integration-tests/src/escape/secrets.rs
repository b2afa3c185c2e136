//! Bypass cases: reading secrets.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{CWD, ResolveFlags, openat2};

use super::{Control, Promise, Way, World, address, c_path, close, engine, held, out_if, system_call};

pub(super) const WAYS: &[Way] = &[
    Way::held("read-ssh-key", |world| read(&world.home.join(".ssh/id_ed25519"))),
    Way::held("list-ssh", |world| {
        fs::read_dir(world.home.join(".ssh"))?.next().ok_or_else(|| held("nothing is in it"))?.map(drop)
    }),
    Way::held("read-aws", |world| read(&world.home.join(".aws/credentials"))),
    Way::held("read-gnupg", |world| read(&world.home.join(".gnupg/secring.gpg"))),
    Way::held("read-netrc", |world| read(&world.home.join(".netrc"))),
    Way::held("read-kube", |world| read(&world.home.join(".kube/config"))),
    Way::held("read-docker", |world| read(&world.home.join(".docker/config.json"))),
    Way::held("read-gh", |world| read(&world.home.join(".config/gh/hosts.yml"))),
    Way::held("read-store", |world| read(&world.store)),
    Way::held("read-through-link", |world| {
        let link = world.project.join("way-to-secret");
        let _ = fs::remove_file(&link);
        symlink(world.home.join(".netrc"), &link)?;
        read(&link)
    }),
    Way::held("read-through-proc-root", |world| {
        read(
            &Path::new("/proc/self/root")
                .join(world.home.strip_prefix("/").unwrap_or(&world.home))
                .join(".netrc"),
        )
    }),
    Way::held("read-through-engine-root", |world| {
        let root = format!("/proc/{}/root", engine()?);
        read(&Path::new(&root).join(world.home.strip_prefix("/").unwrap_or(&world.home)).join(".netrc"))
    }),
    Way::held("link-secret-in", |world| {
        let inside = world.project.join("linked-secret");
        let _ = fs::remove_file(&inside);
        fs::hard_link(world.home.join(".netrc"), &inside)?;
        read(&inside)
    }),
    Way::held("move-secret-in", |world| {
        let (there, here) = (world.home.join(".config/gh/moved.yml"), world.project.join("moved-secret"));
        fs::rename(there, &here)?;
        read(&here)
    }),
    Way::held("read-by-handle", by_handle).open_to(Control::Superuser),
    Way::held("read-dotenv", |world| read(&world.project.join(".env"))).promised(Promise::HeldByMounts),
    Way::held("read-dotenv-below", |world| read(&world.project.join("service/.env.local")))
        .promised(Promise::HeldByMounts),
    Way::held("move-dotenv", |world| {
        let moved = world.project.join("env-moved");
        fs::rename(world.project.join("other/.env"), &moved)?;
        read(&moved)
    })
    .promised(Promise::HeldByMounts),
    Way::held("inherit-environment", |_| {
        let names = fs::read("/proc/self/environ")?;
        let is_there =
            names.split(|byte| *byte == 0).any(|entry| entry.starts_with(b"AWS_SECRET_ACCESS_KEY="));
        out_if(is_there, "it is not in the environment")
    }),
    Way::held("read-engine-environment", |_| {
        let text = fs::read(format!("/proc/{}/environ", engine()?))?;
        out_if(!text.is_empty(), "it reads as empty")
    }),
    Way::held("read-engine-memory", |_| File::open(format!("/proc/{}/mem", engine()?)).map(drop)),
    // Descriptor numbers alone are public; the link target is the secret part.
    Way::held("read-engine-descriptors", |_| fs::read_link(format!("/proc/{}/fd/0", engine()?)).map(drop)),
    Way::held("inherited-descriptors", inherited_descriptors),
];

fn read(path: &Path) -> io::Result<()> {
    // A second attempt with `openat2`, because a filter on one system call may miss the other.
    let text = fs::read(path).or_else(|error| {
        let flags = rustix::fs::OFlags::RDONLY;
        let file =
            openat2(CWD, path, flags, rustix::fs::Mode::empty(), ResolveFlags::empty()).map_err(|_| error)?;
        let mut text = Vec::new();
        File::from(file).read_to_end(&mut text)?;
        Ok::<_, io::Error>(text)
    })?;
    out_if(!text.is_empty(), "it reads as empty")
}

/// Opens a file by handle. The kernel resolves no path then, so rules about directories do not apply.
fn by_handle(world: &World) -> io::Result<()> {
    #[repr(C)]
    struct Handle {
        bytes: u32,
        kind: i32,
        opaque: [u8; 128],
    }
    let mut handle = Handle { bytes: 128, kind: 0, opaque: [0; 128] };
    let (path, mut mount) = (c_path(&world.home.join(".netrc"))?, 0_i32);
    let arguments = [
        libc::AT_FDCWD.into(),
        address(path.as_c_str().to_bytes_with_nul()),
        std::ptr::from_mut(&mut handle) as i64,
        std::ptr::from_mut(&mut mount) as i64,
        0,
    ];
    system_call(libc::SYS_name_to_handle_at, arguments)?;
    let file = system_call(
        libc::SYS_open_by_handle_at,
        [libc::AT_FDCWD.into(), address(&handle), libc::O_RDONLY.into(), 0, 0],
    )?;
    close(file);
    Ok(())
}

/// A tool must inherit only its three standard streams, even if the engine was started with more descriptors.
fn inherited_descriptors(_: &World) -> io::Result<()> {
    let mut open = Vec::new();
    for entry in fs::read_dir("/proc/self/fd")? {
        let entry = entry?;
        let target = fs::read_link(entry.path()).unwrap_or_default();
        // Listing the directory opens a descriptor of its own, which is skipped here.
        let number: i32 = entry.file_name().to_string_lossy().parse().unwrap_or(-1);
        if number > 2 && !target.starts_with("/proc") {
            open.push(target);
        }
    }
    out_if(!open.is_empty(), "only the three streams are open")
}
