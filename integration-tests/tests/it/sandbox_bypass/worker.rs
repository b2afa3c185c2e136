//! A worker in a world, for calls that a Restate server brings to it.

use std::fs::File;
use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::world::Around;

/// Environment variable with the addresses of a running Restate server and the path of `taskpawl-worker`: `INGRESS ADMIN PROGRAM`.
const ENGINE: &str = "TASKPAWL_TEST_ENGINE";

/// A server that is running, and the program of its workers.
pub(super) struct Engine {
    ingress: String,
    admin: String,
    program: String,
}

impl Engine {
    pub(super) fn from_environment() -> Self {
        let words = std::env::var_os(ENGINE).unwrap_or_else(|| panic!("{ENGINE}: INGRESS ADMIN PROGRAM"));
        let words = words.into_string().unwrap();
        let words: Vec<&str> = words.split(' ').collect();
        let [ingress, admin, program] = words[..] else { panic!("{ENGINE} has not three words") };
        Self { ingress: ingress.to_owned(), admin: admin.to_owned(), program: program.to_owned() }
    }

    /// Flags of a run whose calls go to the workers of a pool.
    pub(super) fn flags<'a>(&'a self, pool: &'a str) -> [&'a str; 8] {
        [
            "--engine",
            "restate",
            "--restate-url",
            &self.ingress,
            "--restate-admin",
            &self.admin,
            "--pool",
            pool,
        ]
    }

    /// Starts the only worker of a pool, for the project of a world and as its user.
    pub(super) fn start(&self, around: &Around, pool: &str) -> Worker {
        let key = around.program(&["workers", "key"]).output().unwrap();
        let key = String::from_utf8(key.stdout).unwrap();
        let program = around.place_program(&self.program);
        assert!(around.start(&program, &["trust", key.trim()]).status().unwrap().success());
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let listen = format!("127.0.0.1:{port}");
        let args = [
            "--restate-admin",
            &self.admin,
            "--listen",
            &listen,
            "--pool",
            pool,
            "--name",
            pool,
            "--slots",
            "1",
        ];
        let log = around.world.store.with_file_name(format!("{pool}.log"));
        let into = || Stdio::from(File::options().create(true).append(true).open(&log).unwrap());
        let mut worker = around.start(&program, &args).stdout(into()).stderr(into()).spawn().unwrap();
        let end = Instant::now() + Duration::from_mins(1);
        loop {
            let said = std::fs::read_to_string(&log).unwrap();
            if said.contains("is ready") {
                break;
            }
            assert!(worker.try_wait().unwrap().is_none() && Instant::now() < end, "{said}");
            std::thread::sleep(Duration::from_millis(20));
        }
        Worker(worker)
    }
}

/// A running worker, which ends with the test.
pub(super) struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
