"""Stops, cancelled tasks, the places of calls, and backups that go on elsewhere."""

import json
import pathlib
import signal
import time

from restate_lab import WORK, Coordinator, Lab, check_started_once, fail, setup_starts, starts, trust

# The durations of pauses tell the programs of these tests from all others of the machine.
LONG = "61.58"


def programs(word):
    """Returns the number of processes whose arguments have this word."""
    count = 0
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            count += word.encode() in path.read_bytes().split(b"\0")
        except OSError:
            pass
    return count


def wait_for(what, condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            fail(f"waited in vain for {what}")
        time.sleep(0.05)


def plan_of_pauses(pause):
    return f"""tasks:
  - {{id: once, run: 'sleep {pause}'}}
  - {{id: again, idempotent: true, run: 'sleep {pause}'}}
  - {{id: after, needs: once, run: 'true'}}
"""


def interrupted(name, pause, signals, is_away):
    """Interrupts a run while two calls are at work, and returns its exit code and the states."""
    lab = Lab(name, workers=2, plan=plan_of_pauses(pause)) if is_away else None
    if lab:
        coordinator, flags = lab.coordinator, lab.coordinator.engine()
    else:
        project, home = WORK / name / "project", WORK / name / "home"
        home.mkdir(parents=True)
        project.mkdir()
        (project / "plan.yaml").write_text(plan_of_pauses(pause))
        coordinator, flags = Coordinator(project, home), []
    run = coordinator.begin("run-all-ready", "plan.yaml", *flags)
    wait_for("two programs", lambda: programs(pause) >= 2)
    for _ in range(signals):
        run.send_signal(signal.SIGINT)
        time.sleep(0.3)
    out, err = run.communicate(timeout=60)
    left = programs(pause)
    tasks = {task["id"]: (task["status"], (task.get("blockedReason") or {}).get("type"), task["attempt"],
                          [call["status"] for call in task["metadata"]["toolCalls"]]) for task in coordinator.tasks()}
    if lab:
        lab.close()
    if left:
        fail(f"{name}: {left} programs are left\n{out}\n{err}")
    return run.returncode, tasks


def test_interrupts():
    """Ctrl-C once lets calls on workers end, twice ends them there; states and exit codes are those at home."""
    for signals, pause in ((1, "3.71"), (2, LONG)):
        home, away = (interrupted(f"interrupts-{signals}-{place}", pause, signals, place == "away") for place in ("home", "away"))
        if home != away or home[0] != 130:
            fail(f"interrupts: {signals} signals: {home} at home, {away} on workers")
        print(f"  {signals} × SIGINT: exit 130, {away[1]}, 0 programs left")


def test_cancelled():
    """A cancelled task ends its call on the worker, and the others go on."""
    plan = f"""tasks:
  - {{id: long, run: 'sleep {LONG}'}}
  - {{id: short, run: 'sleep 1'}}
"""
    lab = Lab("cancelled", workers=2, plan=plan)
    run = lab.coordinator.begin("run-all-ready", "plan.yaml", *lab.coordinator.engine())
    wait_for("the program", lambda: programs(LONG) > 0)
    code, out, err = lab.coordinator.run("cancel", "long")
    if code:
        fail(f"cancel: {err}")
    wait_for("the end of the program", lambda: programs(LONG) == 0, 15)
    out, err = run.communicate(timeout=60)
    found = {task["id"]: task["status"] for task in lab.coordinator.tasks()}
    if found != {"long": "cancelled", "short": "done"}:
        fail(f"cancelled: {found}\n{out}\n{err}")
    lab.close()
    print(f"  {found}, 0 programs left")


def test_places():
    """Commands name the workers of calls that run and of those that have ended."""
    lab = Lab("places", workers=1, plan="tasks: [{id: a, run: 'echo hello; sleep 4'}]\n")
    name = "@places-w0"
    run = lab.coordinator.begin("run-all-ready", "plan.yaml", *lab.coordinator.engine())

    def said(*args):
        code, out, err = lab.coordinator.run(*args)
        return out + err

    wait_for("the call", lambda: f"runs on: {name}" in said("show", "a"))
    run_id = json.loads(lab.coordinator.run("runs", "--json")[1])["data"][0]["id"]
    for args in (["watch", "--once"], ["runs", run_id], ["logs", "a"], ["prime"]):
        if name not in said(*args):
            fail(f"places: `{args[0]}` does not name the worker of a running call: {said(*args)}")
    run.communicate(timeout=60)
    for args in (["show", "a"], ["runs", run_id], ["logs", "a"], ["history", "a"]):
        if name not in said(*args):
            fail(f"places: `{args[0]}` does not name the worker of an ended call: {said(*args)}")
    lab.close()
    print("  show, watch, runs, logs and history")


def test_restored():
    """A store that is restored elsewhere joins the calls of the lost one, also those that started after the backup."""
    count = 60
    lab = setup_starts("restored", count, 1, False)
    second = Coordinator(WORK / "restored" / "project2", WORK / "restored" / "home2", lab.server)
    for directory in (second.project, second.home):
        directory.mkdir()
    trust(lab.home, second)
    for worker in lab.workers:
        worker.stop()
        worker.start()
    backup = str(WORK / "restored" / "backup")
    run = lab.coordinator.begin("run-all-ready", "plan.yaml", *lab.coordinator.engine())
    wait_for("starts", lambda: len(starts(lab.project)) >= 12)
    code, out, err = lab.coordinator.run("backup", backup)
    if code or "with the places of" not in out:
        fail(f"backup: {out}{err}")
    at_backup = len(starts(lab.project))
    wait_for("starts after the backup", lambda: len(starts(lab.project)) >= at_backup + 12)
    run.kill()
    run.communicate()
    begin = time.monotonic()
    code, out, err = second.run("restore", backup)
    if code:
        fail(f"restore: {err}")
    code, out, err = second.run("run-all-ready", *second.engine())
    took = time.monotonic() - begin
    undone = second.undone()
    check_started_once(lab, "restored")
    if code or undone or len(starts(lab.project)) != count:
        fail(f"restored: exit {code}, {undone[:5]}\n{out[-2000:]}\n{err[-2000:]}")
    # The lost machine comes back: its store is fenced.
    (lab.project / "more.yaml").write_text("tasks: [{id: more, run: 'echo more >> starts/0'}]\n")
    code, out, err = lab.coordinator.run("run-all-ready", "more.yaml", *lab.coordinator.engine())
    if code != 1 or "more" in starts(lab.project) or "restored from a backup" not in out + err:
        fail(f"restored: the old store still starts calls: exit {code}\n{out}\n{err}")
    lab.close()
    print(f"  {count} tasks done {took:.0f} s after the restore, 0 started twice; the old store is refused")
