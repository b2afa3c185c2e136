"""A copy of a project with a home of its own, in which `taskpawl` is called: by a program, or by a person at a terminal."""

import dataclasses
import glob
import hashlib
import json
import os
import pty
import shutil
import subprocess
import tempfile
from pathlib import Path

DATA = Path(__file__).resolve().parent
# The longest time for a command. A run of a goal takes a second.
TIMEOUT = 120


@dataclasses.dataclass
class Ended:
    """A command that ended."""

    code: int
    out: str
    err: str

    def data(self):
        return json.loads(self.out)["data"]

    def error(self):
        """Returns the message of the error, and its problems."""
        try:
            error = json.loads(self.out)["error"]
        except (ValueError, LookupError):
            return self.err.strip() or self.out.strip()
        return "; ".join([error["message"], *map(str, error.get("problems", [])[:3])])


class Place:
    """The copy of a project in a temporary directory."""

    def __init__(self, program, project):
        self.program = program
        self.kept = tempfile.TemporaryDirectory(prefix="eval-planner-", ignore_cleanup_errors=True)
        root = Path(self.kept.name).resolve()
        self.home, self.project = root / "home", root / "project"
        self.home.mkdir()
        shutil.copytree(DATA / "projects" / project, self.project, ignore=shutil.ignore_patterns("__pycache__"))
        # No environment of a coding agent or of a user gets in.
        passed = {name: os.environ[name] for name in ["PATH", "TMPDIR"] if name in os.environ}
        self.environment = passed | {"HOME": str(self.home), "USER": "user", "PYTHONDONTWRITEBYTECODE": "1"}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kept.cleanup()

    def configure(self, text):
        config = self.home / ".config/taskpawl/config.toml"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(text)
        return config

    def taskpawl(self, *words, **more):
        """Runs a command as a program does: without a terminal."""
        return self.run([self.program, *words], stdin=subprocess.DEVNULL, **more)

    def by_person(self, *words):
        """Runs a command as a person does: with a controlling terminal, which is what decisions need."""
        person, terminal = pty.openpty()
        try:
            # `setsid` makes the terminal the controlling one of a new session, and nothing runs between fork and exec.
            return self.run(["setsid", "--wait", "--ctty", self.program, *words], stdin=terminal)
        finally:
            os.close(terminal)
            os.close(person)

    def shell(self, command):
        return self.run(["sh", "-eu", "-c", command], stdin=subprocess.DEVNULL)

    def run(self, command, timeout=TIMEOUT, environment=None, **more):
        ended = subprocess.run(
            [str(word) for word in command],
            cwd=self.project,
            env=environment or self.environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            **more,
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    def digests(self, patterns):
        """Returns the digests of the files with these patterns."""
        found = {name for pattern in patterns for name in glob.glob(pattern, root_dir=self.project)}
        files = {name: self.project / name for name in found}
        return {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in files.items() if file.is_file()}
