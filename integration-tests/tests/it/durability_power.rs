//! An acknowledged write survives a power cut: the content of the disk at that moment is mounted again.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use crate::support::{Figures, Home, Random, Run, Worker, answers, losses, scale, seed, skip, steps, until};

/// More steps than a writer can finish before the last cut.
const STEPS: usize = 20_000;

#[test]
fn power_cuts() {
    let mut figures = Figures::of("power_cuts", seed());
    let mut random = Random::new(figures.seed);
    let cuts = scale(50, 2_000);
    for is_json in [false, true] {
        let Some(outcome) = cut(is_json, cuts / 2, "", &mut random) else { return };
        let kind = if is_json { "a JSON store" } else { "a database" };
        figures.add(format!(
            "{} cuts of {kind}, {} acknowledged writes, {} lost",
            cuts / 2,
            outcome.acknowledged,
            outcome.lost.len()
        ));
        assert!(outcome.lost.is_empty(), "{:#?}", outcome.lost);
    }
    let control = cut(false, 3, "SkipSync", &mut random).expect("it worked before");
    assert!(!control.lost.is_empty(), "the control: without syncs something is lost");
}

struct Outcome {
    acknowledged: usize,
    lost: Vec<String>,
}

/// Lets a writer write, and cuts the power `cuts` times; `None` if this machine cannot mount disks.
fn cut(is_json: bool, cuts: usize, fault: &str, random: &mut Random) -> Option<Outcome> {
    let directory = Home::in_memory().unwrap_or_else(Home::new);
    let disk = match Disk::make(&directory.path("disk")) {
        Ok(disk) => disk,
        Err(why) => {
            skip("loop", "power cuts", why);
            return None;
        }
    };
    let mut outcome = Outcome { acknowledged: 0, lost: Vec::new() };
    let mut writer = None;
    for number in 0..cuts {
        // A new writer with a new store every ten cuts, so that young stores are cut as well as grown ones.
        if number % 10 == 0 {
            drop(writer.take());
            writer = Some(Writer::start(&disk, &directory, number, is_json, fault));
        }
        let writer = writer.as_ref().expect("there is one");
        writer.go_on(1 + random.below(30));
        let (image, acknowledged) = writer.while_it_stands_still(&disk);
        // A new file each time: a loop device that is not released yet would show its cached content of the former file.
        let copy =
            Disk::of(&directory.path(&format!("copy{number}")), &image).expect("a disk as the one before");
        let wrong = writer.losses_on(&copy, acknowledged);
        outcome.acknowledged += acknowledged;
        outcome.lost.extend(
            wrong.into_iter().map(|mistake| format!("cut {number}, after {acknowledged}: {mistake}")),
        );
    }
    Some(outcome)
}

/// A mounted file system in an image file.
struct Disk {
    image: PathBuf,
    mount: PathBuf,
}

impl Disk {
    fn make(path: &Path) -> Result<Self, String> {
        let image = path.with_extension("image");
        File::create(&image).and_then(|file| file.set_len(24 << 20)).map_err(|error| error.to_string())?;
        // Without lazy initialization the kernel writes nothing later except the harness's own data.
        let options = "lazy_itable_init=0,lazy_journal_init=0";
        run(Command::new("mkfs.ext4").args(["-q", "-E", options]).arg(&image))?;
        Self::mount(path, image)
    }

    fn of(path: &Path, content: &[u8]) -> Result<Self, String> {
        let image = path.with_extension("image");
        std::fs::write(&image, content).map_err(|error| error.to_string())?;
        Self::mount(path, image)
    }

    fn mount(path: &Path, image: PathBuf) -> Result<Self, String> {
        let mount = path.with_extension("mount");
        std::fs::create_dir_all(&mount).map_err(|error| error.to_string())?;
        run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&mount))?;
        Ok(Self { image, mount })
    }

    /// Returns the content of the image, without data that only the page cache of the file system has.
    fn content(&self) -> Vec<u8> {
        let read = || std::fs::read(&self.image).unwrap();
        let mut content = read();
        // The file system may write in the background. Two equal reads mean that the content existed at one moment.
        loop {
            let again = read();
            if again == content {
                return content;
            }
            content = again;
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A killed process may take a moment to close its files; until then the mount is busy.
        until("the disk is let go", || run(Command::new("umount").arg(&self.mount)).ok());
        std::fs::remove_file(&self.image).expect("its image");
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let run = Run::from(command.output().map_err(|error| format!("{program}: {error}"))?);
    if run.code == Some(0) { Ok(()) } else { Err(format!("{program}: {}", run.stderr.trim())) }
}

/// A worker on the disk. Its answers go to a file on another disk, which survives the cut.
struct Writer {
    child: Child,
    home: PathBuf,
    is_json: bool,
    answers: PathBuf,
    steps: Vec<String>,
}

impl Writer {
    fn start(disk: &Disk, elsewhere: &Home, number: usize, is_json: bool, fault: &str) -> Self {
        let home = disk.mount.join(format!("home{number}"));
        std::fs::create_dir(&home).unwrap();
        // The directory exists before the test: only the files of the store are tested, not the directory entry of the home.
        run(Command::new("sync").arg("-f").arg(&home)).unwrap();
        let steps = steps(STEPS);
        let script = elsewhere.file("script", &steps.join("\n"));
        let answers = elsewhere.path("answers");
        let mut command = Worker::with_script(&place(&home, is_json).with_fault(fault), "actor", &script, 0);
        let child = command.stdout(File::create(&answers).unwrap()).spawn().unwrap();
        Self { child, home, is_json, answers, steps }
    }

    fn acknowledged(&self) -> usize {
        let answers = answers(&std::fs::read_to_string(&self.answers).unwrap());
        let wrong = answers.iter().find(|answer| !answer.is_ok());
        assert!(wrong.is_none(), "{wrong:?}");
        answers.len()
    }

    /// Waits until `steps` more steps are acknowledged.
    fn go_on(&self, steps: usize) {
        let goal = self.acknowledged() + steps;
        until("the writer goes on", || (self.acknowledged() >= goal).then_some(()));
    }

    /// Stops the writer and returns the content of the disk and the number of acknowledged steps at that moment.
    fn while_it_stands_still(&self, disk: &Disk) -> (Vec<u8>, usize) {
        let pid = rustix::process::Pid::from_child(&self.child);
        // SIGSTOP takes effect between system calls, so no write is half done when the image is copied.
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
        until("every thread stands still", || is_stopped(self.child.id()).then_some(()));
        let seen = (disk.content(), self.acknowledged());
        rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
        seen
    }

    fn losses_on(&self, disk: &Disk, acknowledged: usize) -> Vec<String> {
        let home = disk.mount.join(self.home.file_name().expect("a name"));
        if !home.is_dir() {
            return vec!["even the directory is lost".to_owned()];
        }
        losses(&place(&home, self.is_json), &self.steps[..=acknowledged], acknowledged)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Frees the room for the store of the next writer.
        let _ = std::fs::remove_dir_all(&self.home);
    }
}

fn place(path: &Path, is_json: bool) -> Home {
    let home = Home::at(path);
    if is_json { home.with_json() } else { home }
}

fn is_stopped(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    threads.map(|thread| std::fs::read_to_string(thread.unwrap().path().join("stat")).unwrap()).all(|stat| {
        let state = stat.rsplit_once(')').expect("a name").1;
        state.trim_start().starts_with('T')
    })
}
