"""Files that reach workers through git."""

import subprocess
import time

from restate_lab import WORK, Lab, Worker, fail

PLAN = """tasks:
  - id: build
    writes: [out]
    run: mkdir -p out && cat src/a src/b > out/joined && test ! -e .env && test ! -e build.log
  - {id: use, needs: build, sends: [out/**], writes: [out], run: tr a-z A-Z < out/joined > out/upper}
  - {id: local, needs: use, runsOn: local, run: cat out/upper}
  - {id: clash, needs: local, writes: [src/a], run: 'sleep 3; echo theirs > src/a'}
"""


def git(directory, *args):
    done = subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *args], cwd=directory, capture_output=True, text=True)
    if done.returncode:
        fail(f"git {args}: {done.stderr}")
    return done.stdout


def test_files_by_git():
    """Tracked files reach a worker with another directory, declared changes come back, and a conflict keeps both."""
    lab = Lab("files", workers=0, plan=PLAN)
    remote = WORK / "files" / "remote"
    remote.mkdir()
    git(remote, "init", "-q", "--bare")
    (lab.project / ".git").rmdir()
    git(lab.project, "init", "-q", "-b", "main")
    (lab.project / "src").mkdir()
    for name, text in (("src/a", "one\n"), ("src/b", "two\n"), (".env", "SECRET=1\n"), (".gitignore", "*.log\n")):
        (lab.project / name).write_text(text)
    git(lab.project, "add", ".")
    git(lab.project, "commit", "-q", "-m", "first")
    (lab.project / "build.log").write_text("ignored\n")
    config = lab.home / "config" / "taskpawl"
    config.mkdir(parents=True, exist_ok=True)
    (config / "config.toml").write_text(f'[engines.restate]\nfiles = "git"\nremote = "{remote}"\n')
    empty = WORK / "files" / "worker-project"
    empty.mkdir()
    worker = Worker(lab.server, "files-w", empty, lab.home)
    lab.workers.append(worker)
    worker.start()
    code, out, err = lab.coordinator.run("run-all-ready", "plan.yaml", *lab.coordinator.engine())
    if code == 0 or "files git" not in out + err:
        fail(f"files: the first push was not asked about: exit {code}\n{out}\n{err}")
    run = lab.coordinator.begin("run-all-ready", "plan.yaml", *lab.coordinator.engine(), "--send-files")
    upper = lab.project / "out" / "upper"

    end = time.monotonic() + 60
    while not any(task["id"] == "clash" and task["status"] == "in_progress" for task in lab.coordinator.tasks()):
        if time.monotonic() > end or run.poll() is not None:
            out, err = run.communicate()
            fail(f"files: `clash` does not start\n{out}\n{err}")
        time.sleep(0.1)
    time.sleep(1)
    (lab.project / "src" / "a").write_text("mine\n")
    out, err = run.communicate(timeout=60)
    found = {task["id"]: (task["status"], task["metadata"]["toolCalls"][0].get("errorClass")) for task in lab.coordinator.tasks()}
    expected = {"build": ("done", None), "use": ("done", None), "local": ("done", None), "clash": ("failed", "conflict")}
    if found != expected or upper.read_text() != "ONE\nTWO\n" or (lab.project / "src" / "a").read_text() != "mine\n":
        fail(f"files: {found}\n{out}\n{err}")
    kept = [line.split()[1] for line in git(lab.project, "for-each-ref", "--format=x %(refname)", "refs/taskpawl").splitlines()]
    if len(kept) != 1 or git(lab.project, "show", f"{kept[0]}:src/a") != "theirs\n":
        fail(f"files: the work of the worker is not kept: {kept}")
    if git(remote, "for-each-ref"):
        fail(f"files: references are left: {git(remote, 'for-each-ref')}")
    if list(empty.iterdir()):
        fail(f"files: the worker wrote into its project: {list(empty.iterdir())}")
    lab.close()
    print("  4 tasks: results came back, the conflict kept both, 0 references left")
