"""Drives a Restate server, workers and coordinators: equality with local runs, kills, refusals and figures.

Arguments: the programs `taskpawl` and `taskpawl-worker`, the server, and a directory for everything. `ONLY=NAME,…` runs some parts.
"""

import atexit
import json
import os
import pathlib
import random
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

    def start(self):
        # A killed server may hold its address for a moment.
        for _ in range(30):
            env = environment(self.dir) | {
                "RESTATE_INGRESS__BIND_ADDRESS": f"127.0.0.1:{self.ingress}",
                "RESTATE_ADMIN__BIND_ADDRESS": f"127.0.0.1:{self.admin}",
                "RESTATE_BIND_ADDRESS": f"127.0.0.1:{self.node}",
                "RESTATE_ADVERTISED_ADDRESS": f"http://127.0.0.1:{self.node}",
                "RESTATE_LISTEN_MODE": "tcp",
                "RESTATE_BASE_DIR": str(self.dir / "data"),
                "RESTATE_NODE_NAME": "test",
                "RESTATE_DISABLE_TELEMETRY": "true",
                "RESTATE_LOG_FILTER": "warn",
                "RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE": "512MB",
                "DO_NOT_TRACK": "1",
            }
            log = open(self.dir / "log", "ab")
            self.process = spawn([SERVER], env=env, stdout=log, stderr=log, cwd=self.dir)
            end = time.monotonic() + 60
            while time.monotonic() < end and self.process.poll() is None:
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/health", timeout=1)
                    urllib.request.urlopen(f"http://127.0.0.1:{self.ingress}/restate/health", timeout=1)
                    return
                except OSError:
                    time.sleep(0.1)
            self.kill()
            time.sleep(0.5)
        fail(f"the server does not start: {(self.dir / 'log').read_text()[-2000:]}")

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        if self.process:
            self.process.wait()


class Worker:
    def __init__(self, server, name, project, home, slots=4, labels=()):
        self.server, self.name, self.home = server, name, home
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


class Lab:
    """One server, workers and a project that all of them share."""

    def __init__(self, name, workers=3, slots=4, plan=None, labels=()):
        self.home = WORK / name / "home"
        self.home.mkdir(parents=True)
        self.project = WORK / name / "project"
        self.project.mkdir()
        (self.project / ".git").mkdir()
        self.server = Server(f"{name}/server")
        self.server.start()
        self.coordinator = Coordinator(self.project, self.home, self.server)
        if plan is not None:
            (self.project / "plan.yaml").write_text(plan)
        code, key, err = self.coordinator.run("workers", "key")
        if code:
            fail(f"workers key: {err}")
        for_worker = subprocess.run([WORKER, "trust", key.strip()], env=environment(self.home), capture_output=True, text=True)
        if for_worker.returncode:
            fail(f"trust: {for_worker.stderr}")
        self.workers = [Worker(self.server, f"{name}-w{at}", self.project, self.home, slots, labels) for at in range(workers)]
        for worker in self.workers:
            worker.start()

    def close(self):
        for worker in self.workers:
            worker.stop()
        self.server.kill()


def starts(project):
    """Returns how often each task started: every start appends a line to a file of its own."""
    return {path.name: len(path.read_text().splitlines()) for path in (project / "starts").glob("*")}


def plan_of_starts(count, pause, idempotent):
    word = "true" if idempotent else "false"
    tasks = [f"  - {{id: t{at}, idempotent: {word}, run: 'echo x >> starts/t{at}; sleep {pause}; echo y >> ends/t{at}'}}"
             for at in range(count)]
    return "tasks:\n" + "\n".join(tasks) + "\n"


def strip(task):
    calls = [{"status": call["status"], "attempts": call["attempts"], "result": call.get("result"),
              "errorClass": call.get("errorClass")} for call in task["metadata"]["toolCalls"]]
    for call in calls:
        # Times of programs differ between any two runs.
        if isinstance(call["result"], dict):
            call["result"] = {key: value for key, value in call["result"].items() if key not in ("millis", "durationMs", "sandbox")}
    return {"id": task["id"], "status": task["status"], "attempt": task["attempt"], "blocked": (task.get("blockedReason") or {}).get("type"),
            "calls": calls}


def test_equal():
    """The plans of `examples/` end on three workers as they end at home."""
    # The agents need a repository, and what they do in it stays on this machine.
    left_out = ("agents", "release-check")
    plans = sorted(path for path in (ROOT / "examples").glob("*/*.yaml") if path.parent.name not in left_out)
    for at, path in enumerate(plans):
        if path.name in ("params.yaml",):
            continue
        results = []
        for place in ("home", "away"):
            name = f"equal-{at}-{place}"
            if place == "home":
                base = WORK / name
                (base / "home").mkdir(parents=True)
                shutil.copytree(path.parent, base / "project")
                (base / "project" / ".git").mkdir()
                coordinator, flags, lab = Coordinator(base / "project", base / "home"), [], None
            else:
                lab = Lab(name)
                shutil.copytree(path.parent, lab.project, dirs_exist_ok=True)
                coordinator, flags = lab.coordinator, lab.coordinator.engine()
            code, out, err = coordinator.run("run-all-ready", path.name, "--jobs", "4", *flags)
            tasks = {task["id"]: strip(task) for task in coordinator.tasks()}
            results.append((code, tasks, out + err))
            if lab:
                lab.close()
        (home_code, home, said), (away_code, away, other) = results
        if home_code != away_code or home != away:
            differing = [(home.get(id), away.get(id)) for id in home.keys() | away.keys() if home.get(id) != away.get(id)]
            fail(f"{path}: {home_code} at home, {away_code} away: {json.dumps(differing)[:3000]}\n{said}\n{other}")
        print(f"  {path.parent.name}/{path.name}: exit {home_code}, {len(home)} tasks alike")


def setup_starts(name, count, pause, idempotent, **lab):
    lab = Lab(name, plan=plan_of_starts(count, pause, idempotent), **lab)
    (lab.project / "starts").mkdir()
    (lab.project / "ends").mkdir()
    return lab


def check_started_once(lab, what):
    twice = {task: count for task, count in starts(lab.project).items() if count > 1}
    if twice:
        fail(f"{what}: started twice: {twice}")


def test_worker_kills():
    """Killed workers: calls that may not be repeated start once and are interrupted; nothing is lost."""
    count = 120
    lab = setup_starts("worker-kills", count, 0.3, False)
    run = lab.coordinator.begin("run-all-ready", "plan.yaml", *lab.coordinator.engine())
    randomness, kills = random.Random(1), 0
    while kills < KILLS and run.poll() is None:
        time.sleep(randomness.uniform(0.2, 0.6))
        worker = randomness.choice(lab.workers)
        worker.kill()
        worker.start()
        kills += 1
    out, err = run.communicate(timeout=300)
    states = {}
    for task in lab.coordinator.tasks():
        reason = (task.get("blockedReason") or {}).get("type", "")
        states[task["status"] + reason] = states.get(task["status"] + reason, 0) + 1
    check_started_once(lab, "worker kills")
    if set(states) - {"done", "blockedinterrupted"} or sum(states.values()) != count:
        fail(f"worker kills: {states}\n{out[-2000:]}\n{err[-2000:]}")
    lab.close()
    print(f"  {kills} kills, {count} tasks: {states}, 0 started twice, 0 lost")


def test_repeatable_worker_kills():
    """Killed workers: calls that may be repeated are, and all tasks are done."""
    count = 60
    lab = setup_starts("repeatable", count, 0.3, True)
    run = lab.coordinator.begin("run-all-ready", "plan.yaml", *lab.coordinator.engine())
    kills = 0
    while kills < 3 and run.poll() is None:
        time.sleep(0.7)
        lab.workers[kills % 3].kill()
        lab.workers[kills % 3].start()
        kills += 1
    out, err = run.communicate(timeout=300)
    undone = [task["id"] for task in lab.coordinator.tasks() if task["status"] != "done"]
    if run.returncode or undone:
        fail(f"repeatable: exit {run.returncode}, {undone}\n{out[-2000:]}\n{err[-2000:]}")
    lab.close()
    print(f"  {kills} kills, {count} tasks done")


def test_coordinator_kills():
    """Killed coordinators: their calls go on, and the next run joins them under the same attempt."""
    count = 400
    lab = setup_starts("coordinator-kills", count, 0.5, False)
    code, out, err = lab.coordinator.run("apply", "plan.yaml")
    if code:
        fail(f"apply: {err}")
    kills = 0
    while kills < KILLS:
        run = lab.coordinator.begin("run-all-ready", *lab.coordinator.engine())
        time.sleep(1.2)
        if run.poll() is not None:
            break
        run.send_signal(signal.SIGKILL)
        run.communicate()
        kills += 1
    code, out, err = lab.coordinator.run("run-all-ready", *lab.coordinator.engine())
    tasks = lab.coordinator.tasks()
    undone = [(task["id"], task["status"]) for task in tasks if task["status"] != "done"]
    again = [task["id"] for task in tasks if task["attempt"] != 1]
    check_started_once(lab, "coordinator kills")
    in_flight = kills * 12
    if len(undone) > in_flight * 0.05:
        fail(f"coordinator kills: {len(undone)} of about {in_flight} in flight were not joined: {undone[:5]}\n{err[-2000:]}")
    lab.close()
    print(f"  {kills} kills with 12 in flight, {count} tasks: {len(undone)} not joined, {len(again)} with another attempt, 0 started twice")


def test_server_kills():
    """Killed servers: they come back on their directory, and calls are joined."""
    count = 200
    lab = setup_starts("server-kills", count, 0.3, False)
    run = lab.coordinator.begin("run-all-ready", "plan.yaml", *lab.coordinator.engine())
    kills = 0
    while kills < SERVER_KILLS and run.poll() is None:
        time.sleep(1.5)
        lab.server.kill()
        lab.server.start()
        kills += 1
    out, err = run.communicate(timeout=300)
    undone = [(task["id"], task["status"]) for task in lab.coordinator.tasks() if task["status"] != "done"]
    check_started_once(lab, "server kills")
    if run.returncode or undone:
        fail(f"server kills: exit {run.returncode}, {undone[:5]}\n{out[-2000:]}\n{err[-2000:]}")
    lab.close()
    print(f"  {kills} kills, {count} tasks done, 0 started twice")


def test_silent_engine():
    """An engine that never comes back: exit code 4, nothing failed, no call that did not leave is stuck."""
    lab = setup_starts("silent", 20, 0.1, False)
    code, out, err = lab.coordinator.run("apply", "plan.yaml")
    run = lab.coordinator.begin("run-all-ready", *lab.coordinator.engine(), "--engine-patience", "12s", "--format", "ndjson")
    # Killed while nothing or little is under way.
    time.sleep(0.3)
    lab.server.kill()
    out, err = run.communicate(timeout=120)
    states = {task["status"] for task in lab.coordinator.tasks()}
    if run.returncode != 4 or states & {"failed", "cancelled"} or "is silent" not in out + err:
        fail(f"silent engine: exit {run.returncode}, {states}\n{out[-1500:]}\n{err[-1500:]}")
    lab.server.start()
    code, out, err = lab.coordinator.run("run-all-ready", *lab.coordinator.engine())
    undone = [(task["id"], task["status"]) for task in lab.coordinator.tasks() if task["status"] != "done"]
    check_started_once(lab, "silent engine")
    if code or undone:
        fail(f"after the silence: exit {code}, {undone}\n{err[-1500:]}")
    lab.close()
    print(f"  exit 4, states {sorted(states)}; the next run finished all")


def test_labels():
    """`runsOn`: labels decide, and a label that no worker offers leaves its task."""
    plan = """tasks:
  - {id: here, runsOn: local, run: 'true'}
  - {id: gpu, runsOn: gpu, run: 'true'}
  - {id: tpu, runsOn: tpu, run: 'true'}
"""
    lab = Lab("labels", workers=1, plan=plan, labels=["gpu"])
    code, out, err = lab.coordinator.run("run-all-ready", "plan.yaml", *lab.coordinator.engine())
    found = {task["id"]: (task["status"], task["metadata"]["toolCalls"][0].get("worker")) for task in lab.coordinator.tasks()}
    expected = {"here": ("done", None), "gpu": ("done", "labels-w0"), "tpu": ("todo", None)}
    if found != expected or "no worker offers `tpu`" not in out + err:
        fail(f"labels: {found}\n{out}\n{err}")
    lab.close()
    print("  local, a label and a missing label")


def test_refusals():
    """A worker that trusts another key runs nothing."""
    lab = setup_starts("refusals", 3, 0, False, workers=1)
    stranger = Coordinator(lab.project, WORK / "refusals" / "stranger", lab.server)
    stranger.home.mkdir()
    code, out, err = stranger.run("run-all-ready", "plan.yaml", *stranger.engine())
    if code != 1 or starts(lab.project) or "is not trusted" not in out + err:
        fail(f"refusals: exit {code}, {starts(lab.project)}\n{out}\n{err}")
    lab.close()
    print("  3 calls of an unknown coordinator: 0 starts")


def test_figures():
    """Calls that do nothing, through the workers and beside it the bare ingress."""
    count = 20_000 if FULL else 2_000
    tasks = "".join(f"  - {{id: t{at}, call: {{log: {{message: x}}}}}}\n" for at in range(count))
    lab = Lab("figures", plan="tasks:\n" + tasks, slots=64)
    code, out, err = lab.coordinator.run("apply", "plan.yaml")
    if code:
        fail(f"apply: {err[-1000:]}")
    begin = time.monotonic()
    code, out, err = lab.coordinator.run("run-all-ready", *lab.coordinator.engine(), "--format", "ndjson")
    took = time.monotonic() - begin
    if code:
        fail(f"figures: exit {code}\n{out[-1000:]}\n{err[-1000:]}")
    print(f"  {count} calls in {took:.1f} s: {count / took:.0f} calls/s")
    lab.close()


for name, test in list(globals().items()):
    if name.startswith("test_") and (not ONLY or name.removeprefix("test_") in ONLY):
        print(f"== {name.removeprefix('test_')}: {test.__doc__.splitlines()[0]}", flush=True)
        test()
