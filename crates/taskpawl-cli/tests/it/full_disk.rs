//! A full disk: the command fails, acknowledged changes survive, and the store works again after space is freed.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::Cli;

/// A small file system in memory, unmounted on drop.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts the file system; returns `None` without the permission.
    fn mount(at: &Path, size: &str) -> Option<Self> {
        std::fs::create_dir_all(at).unwrap();
        let options = format!("size={size}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(at).output();
        mounted.is_ok_and(|output| output.status.success()).then(|| Self(at.to_owned()))
    }

    fn grow(&self, size: &str) {
        let options = format!("remount,size={size}");
        let output = Command::new("mount").args(["-o", &options]).arg(&self.0).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
    }
}

#[test]
fn a_full_disk_loses_nothing_and_is_no_end() {
    for store in ["tasks.db", "json:tasks.json"] {
        let cli = Cli::without_store();
        let Some(disk) = SmallDisk::mount(&cli.path("disk"), "512k") else {
            taskpawl_fuzz::skip("loop", "a full disk", "this user may not mount a small file system");
            return;
        };
        let store = match store.strip_prefix("json:") {
            Some(name) => format!("json:{}", disk.0.join(name).display()),
            None => disk.0.join(store).display().to_string(),
        };
        let cli = cli.with("TASKPAWL_STORE", &store);
        fill_and_go_on(&cli, &disk);
    }
}

fn fill_and_go_on(cli: &Cli, disk: &SmallDisk) {
    let description = "x".repeat(20_000);
    let create =
        |number: usize| cli.run(&["create", &format!("task {number}"), "--description", &description]);
    let mut acknowledged = 0;
    let refused = loop {
        let run = create(acknowledged);
        if run.code != Some(0) {
            break run;
        }
        acknowledged += 1;
        assert!(acknowledged < 200, "the disk never filled up");
    };
    assert!(acknowledged > 0 && refused.code == Some(8), "{refused}");
    assert!(refused.stderr.contains("no space left") && refused.stderr.contains("disk/tasks."), "{refused}");
    assert_eq!(count(cli), acknowledged, "what was acknowledged is there, and nothing else");
    disk.grow("8m");
    create(acknowledged).ok();
    assert_eq!(count(cli), acknowledged + 1);
}

fn count(cli: &Cli) -> usize {
    let list = cli.run(&["list", "--limit", "0", "--json", "--fields", "id"]).ok();
    list.json()["data"].as_array().unwrap().len()
}
