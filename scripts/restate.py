"""Drives a Restate server, workers and coordinators: equality with local runs, kills, refusals and figures."""

import json
import random
import shutil
import time

import restate_cluster
import restate_files
import restate_load
import restate_refusals
import restate_stops
from restate_lab import (FULL, KILLS, ONLY, ROOT, SERVER_KILLS, WORK, Coordinator, Lab, check_kills, check_started_once, fail, setup_starts,
                         starts)


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


def test_worker_kills():
    """Killed workers: calls that may not be repeated start once and are interrupted; nothing is lost."""
    count = 100 * KILLS
    lab = setup_starts("worker-kills", count, 0.3, False)
    run = lab.coordinator.begin("run-all-ready", "plan.yaml", *lab.coordinator.engine())
    randomness, kills = random.Random(1), 0
    while kills < KILLS and run.poll() is None:
        time.sleep(randomness.uniform(0.2, 0.6))
        worker = randomness.choice(lab.workers)
        worker.kill()
        worker.start()
        kills += 1
    out, err = run.communicate(timeout=600)
    states = lab.coordinator.states()
    check_kills("worker kills", kills, KILLS)
    check_started_once(lab, "worker kills")
    if set(states) - {"done", "blockedinterrupted"} or sum(states.values()) != count:
        fail(f"worker kills: {states}\n{out[-2000:]}\n{err[-2000:]}")
    lab.close()
    print(f"  {kills} kills, {count} tasks: {states}, 0 started twice, 0 lost")


def test_repeatable_worker_kills():
    """Killed workers: calls that may be repeated are, and all tasks are done."""
    count, wanted = 120, 3
    lab = setup_starts("repeatable", count, 0.3, True)
    run = lab.coordinator.begin("run-all-ready", "plan.yaml", *lab.coordinator.engine())
    kills = 0
    while kills < wanted and run.poll() is None:
        time.sleep(0.7)
        lab.workers[kills % 3].kill()
        lab.workers[kills % 3].start()
        kills += 1
    out, err = run.communicate(timeout=300)
    undone = lab.coordinator.undone()
    check_kills("repeatable", kills, wanted)
    if run.returncode or undone:
        fail(f"repeatable: exit {run.returncode}, {undone}\n{out[-2000:]}\n{err[-2000:]}")
    lab.close()
    print(f"  {kills} kills, {count} tasks done")


def test_coordinator_kills():
    """Killed coordinators: their calls go on, and the next run joins them under the same attempt."""
    count = 40 * KILLS
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
        run.kill()
        run.communicate()
        kills += 1
    code, out, err = lab.coordinator.run("run-all-ready", *lab.coordinator.engine())
    undone = lab.coordinator.undone()
    again = [task["id"] for task in lab.coordinator.tasks() if task["attempt"] != 1]
    check_kills("coordinator kills", kills, KILLS)
    check_started_once(lab, "coordinator kills")
    in_flight = kills * 12
    if len(undone) > in_flight * 0.05:
        fail(f"coordinator kills: {len(undone)} of about {in_flight} in flight were not joined: {undone[:5]}\n{err[-2000:]}")
    lab.close()
    print(f"  {kills} kills with 12 in flight, {count} tasks: {len(undone)} not joined, {len(again)} with another attempt, 0 started twice")


def test_server_kills():
    """Killed servers: they come back on their directory, and calls are joined."""
    count, pause = (20_000, 0.1) if FULL else (200, 0.3)
    lab = setup_starts("server-kills", count, pause, False)
    run = lab.coordinator.begin("run-all-ready", "plan.yaml", *lab.coordinator.engine(), "--quiet")
    kills = 0
    while kills < SERVER_KILLS and run.poll() is None:
        time.sleep(0.2)
        if len(starts(lab.project)) * (SERVER_KILLS + 1) > count * (kills + 1):
            lab.server.kill()
            lab.server.start()
            kills += 1
    out, err = run.communicate(timeout=1200)
    undone = lab.coordinator.undone()
    check_kills("server kills", kills, SERVER_KILLS)
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
    undone = lab.coordinator.undone()
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


# Figures come last, so that a slow machine does not hide the rest.
PARTS = {**globals(), **vars(restate_stops), **vars(restate_cluster), **vars(restate_files), **vars(restate_refusals), **vars(restate_load)}
for name, test in list(PARTS.items()):
    if name.startswith("test_") and (not ONLY or name.removeprefix("test_") in ONLY):
        print(f"== {name.removeprefix('test_')}: {test.__doc__.splitlines()[0]}", flush=True)
        test()
