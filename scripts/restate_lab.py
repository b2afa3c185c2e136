"""A Restate server, workers, coordinators and projects for tests.

Arguments: the programs `taskpawl` and `taskpawl-worker`, the server, and a directory for everything. `ONLY=NAME,…` runs some parts.
"""

import atexit
import collections
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

TASKPAWL, WORKER, SERVER = sys.argv[1:4]
WORK = pathlib.Path(sys.argv[4])
ROOT = pathlib.Path(__file__).resolve().parent.parent
FULL = os.environ.get("TASKPAWL_HARNESS") == "full"
ONLY = [name for name in os.environ.get("ONLY", "").split(",") if name]
KILLS = 100 if FULL else 10
SERVER_KILLS = 20 if FULL else 2


PROCESSES = []


@atexit.register
def end_processes():
    """Ends what a failed part leaves."""
    for process in PROCESSES:
        if process.poll() is None:
            process.kill()
            process.wait()


def spawn(*args, **options):
    process = subprocess.Popen(*args, **options)
    PROCESSES.append(process)
    return process


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    found = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return found


def environment(home):
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "USER") if name in os.environ}
    return {**kept, "HOME": str(home), "XDG_STATE_HOME": f"{home}/state", "XDG_CONFIG_HOME": f"{home}/config"}


def fail(message):
    print(f"FAILED: {message}")
    raise SystemExit(1)


class Server:
    def __init__(self, name):
        self.dir = WORK / name
        self.dir.mkdir(parents=True)
        self.ingress, self.admin, self.node = free_ports(3)
        self.process = None

    def settings(self):
        """The environment of the process."""
        return environment(self.dir) | {
            "RESTATE_INGRESS__BIND_ADDRESS": f"127.0.0.1:{self.ingress}",
            "RESTATE_ADMIN__BIND_ADDRESS": f"127.0.0.1:{self.admin}",
            "RESTATE_BIND_ADDRESS": f"127.0.0.1:{self.node}",
            "RESTATE_ADVERTISED_ADDRESS": f"http://127.0.0.1:{self.node}",
            "RESTATE_LISTEN_MODE": "tcp",
            "RESTATE_BASE_DIR": str(self.dir / "data"),
            "RESTATE_NODE_NAME": "test",
            "RESTATE_DISABLE_TELEMETRY": "true",
            "RESTATE_LOG_FILTER": "warn",
            # The default of 24 costs two cores a fifth of their calls a second.
            "RESTATE_DEFAULT_NUM_PARTITIONS": "4",
            "RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE": "512MB",
            "DO_NOT_TRACK": "1",
        }

    def begin(self):
        log = open(self.dir / "log", "ab")
        self.process = spawn([SERVER], env=self.settings(), stdout=log, stderr=log, cwd=self.dir)

    def is_healthy(self):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/health", timeout=1)
            urllib.request.urlopen(f"http://127.0.0.1:{self.ingress}/restate/health", timeout=1)
        except OSError:
            return False
        return True

    def start(self):
        # A killed server may hold its address for a moment.
        for _ in range(30):
            self.begin()
            end = time.monotonic() + 60
            while time.monotonic() < end and self.process.poll() is None:
                if self.is_healthy():
                    return
                time.sleep(0.1)
            self.kill()
            time.sleep(0.5)
        fail(f"the server does not start: {(self.dir / 'log').read_text()[-2000:]}")

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        if self.process:
            self.process.wait()

    def end(self):
        """Kills the server and gives the room of its journal back: some 50 of them fill a disk."""
        self.kill()
        shutil.rmtree(self.dir / "data", ignore_errors=True)


class Worker:
    def __init__(self, server, name, project, home, slots=4, labels=()):
        self.server, self.name, self.home, self.slots = server, name, home, slots
        (self.port,) = free_ports(1)
        labels = [word for label in labels for word in ("--label", label)]
        self.args = [WORKER, "--restate-admin", f"http://127.0.0.1:{server.admin}", "--listen", f"127.0.0.1:{self.port}",
                     "--name", name, "--slots", str(slots), "--project", str(project), *labels]
        self.log = WORK / f"{name}.log"
        self.process = None

    def start(self):
        begun = self.log.stat().st_size if self.log.exists() else 0
        log = open(self.log, "ab")
        self.process = spawn(self.args, env=environment(self.home), stdout=log, stderr=log)
        end = time.monotonic() + 60
        while b"is ready" not in self.log.read_bytes()[begun:]:
            if self.process.poll() is not None or time.monotonic() > end:
                fail(f"worker {self.name} does not start: {self.log.read_text()[-2000:]}")
            time.sleep(0.05)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Coordinator:
    def __init__(self, project, home, server=None):
        self.project, self.home, self.server = project, home, server

    def engine(self):
        return ["--engine", "restate", "--restate-url", f"http://127.0.0.1:{self.server.ingress}",
                "--restate-admin", f"http://127.0.0.1:{self.server.admin}"]

    def begin(self, *args):
        return spawn([TASKPAWL, *args], cwd=self.project, env=environment(self.home),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *args):
        process = self.begin(*args)
        out, err = process.communicate(timeout=600)
        return process.returncode, out, err

    def tasks(self):
        code, out, err = self.run("list", "--json", "--limit", "100000")
        if code:
            fail(f"list: {out} {err}")
        return json.loads(out)["data"]

    def undone(self):
        return [(task["id"], task["status"]) for task in self.tasks() if task["status"] != "done"]

    def states(self):
        """Returns the number of tasks in each state, with the reason of blocked ones."""
        states = {}
        for task in self.tasks():
            state = task["status"] + (task.get("blockedReason") or {}).get("type", "")
            states[state] = states.get(state, 0) + 1
        return states


def trust(home, coordinator):
    """Lets the workers of a home trust the key of a coordinator."""
    code, key, err = coordinator.run("workers", "key")
    if code:
        fail(f"workers key: {err}")
    trusted = subprocess.run([WORKER, "trust", key.strip()], env=environment(home), capture_output=True, text=True)
    if trusted.returncode:
        fail(f"trust: {trusted.stderr}")


class Lab:
    """One server, workers and a project that all of them share."""

    def __init__(self, name, workers=3, slots=4, plan=None, labels=(), server=None):
        self.home = WORK / name / "home"
        self.home.mkdir(parents=True, exist_ok=True)
        self.project = WORK / name / "project"
        self.project.mkdir()
        (self.project / ".git").mkdir()
        self.server = server or Server(f"{name}/server")
        self.server.start()
        self.coordinator = Coordinator(self.project, self.home, self.server)
        if plan is not None:
            (self.project / "plan.yaml").write_text(plan)
        trust(self.home, self.coordinator)
        self.workers = [Worker(self.server, f"{name}-w{at}", self.project, self.home, slots, labels) for at in range(workers)]
        for worker in self.workers:
            worker.start()

    def close(self):
        for worker in self.workers:
            worker.stop()
        self.server.end()


def starts(project):
    """Returns how often each task started: every start appends its id to one of some files."""
    files = (project / "starts").iterdir()
    return collections.Counter(task for path in files for task in path.read_text().splitlines())


def plan_of_starts(count, pause, idempotent):
    word = "true" if idempotent else "false"
    # A directory with an entry for each of many tasks would be what the run waits for.
    rest = f"; sleep {pause}" if pause else ""
    tasks = [f"  - {{id: t{at}, idempotent: {word}, run: 'echo t{at} >> starts/{at % 100}{rest}'}}" for at in range(count)]
    return "tasks:\n" + "\n".join(tasks) + "\n"


def setup_starts(name, count, pause, idempotent, **lab):
    lab = Lab(name, plan=plan_of_starts(count, pause, idempotent), **lab)
    (lab.project / "starts").mkdir()
    return lab


def check_kills(what, done, wanted):
    """A run that ends too early shows less than it promises."""
    if done < wanted:
        fail(f"{what}: the run ended after {done} of {wanted} kills")


def check_started_once(lab, what):
    """No call has started twice, and none is done that has not started."""
    counts = starts(lab.project)
    twice = {task: count for task, count in counts.items() if count > 1}
    if twice:
        fail(f"{what}: started twice: {twice}")
    unstarted = [task["id"] for task in lab.coordinator.tasks() if task["status"] == "done" and not counts[task["id"]]]
    if unstarted:
        fail(f"{what}: done without a start: {unstarted[:5]}")
