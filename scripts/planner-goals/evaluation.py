"""The evaluation of one goal: a plan is made, checked, applied and run, a person answers, and the end state is judged."""

import dataclasses
import hashlib
import json
import math
import os

import judge
from place import DATA, Place

# A plan may have this many times the tasks of the reference.
MAX_TASKS = 1.5


@dataclasses.dataclass
class Result:
    """The judgement about the plan for one goal."""

    goal: dict
    # What is wrong: the criterion, and a text. The criteria: check, commands, tasks, width, asks, end.
    faults: list = dataclasses.field(default_factory=list)
    plan: dict = dataclasses.field(default_factory=dict)
    tasks: int = 0
    turns: int = 0
    width: int = 0
    questions: int = 0
    # Digests of the prompt, and of the plan that became of the answers.
    prompt: str = ""
    made: str = ""

    def fault(self, criterion, text):
        self.faults.append((criterion, text))

    def criteria(self):
        return {criterion for criterion, _ in self.faults}

    def line(self):
        goal, end = self.goal, "wrong" if "end" in self.criteria() else "right" if self.tasks else "none"
        counts = f"tasks {self.tasks:2}/{goal['reference']}  turns {self.turns}  width {self.width}/{goal['width']}"
        return f"{goal['id']:16} {counts}  questions {self.questions}  end {end:5}  {'FAILED' if self.faults else 'ok'}"


class Evaluation:
    """The evaluation of one goal in a place of its own."""

    def __init__(self, program, goal):
        self.goal, self.result = goal, Result(goal)
        self.place = Place(program, goal["project"])
        self.yes, self.is_by_hand_done = set(), False

    def run(self, settings, planner_environment=None, timeout="5m"):
        """Evaluates the plan of the planner with these settings, the text of a configuration file."""
        with self.place as place:
            if "setup" in self.goal:
                prepared = place.shell(self.goal["setup"])
                assert prepared.code == 0, f"{self.goal['id']}: setup: {prepared.err}"
            environment = None
            if planner_environment is not None:
                # A real planner needs its own home with its account; the plan is made there, and carried out here.
                own = {"XDG_CONFIG_HOME": str(place.home / ".config"), "TASKPAWL_STORE": str(place.home / "t.db")}
                environment = planner_environment | own
            if self.make(settings, environment, timeout):
                self.judge()
        return self.result

    def make(self, settings, environment, timeout):
        """Lets the planner make the plan, and applies it. Returns false if there is none."""
        place, result = self.place, self.result
        documents = [word for name in self.goal.get("from", []) for word in ["--from", DATA / "documents" / name]]
        words = ["plan", "new", self.goal["goal"], *documents]
        shown = place.taskpawl(*words, "--print-prompt")
        assert shown.code == 0, f"{self.goal['id']}: --print-prompt: {shown.error()}"
        result.prompt = digest(shown.out)
        place.configure(settings)
        words += ["-o", "plan.yaml", "--yes", "--timeout", timeout, "--json"]
        made = place.taskpawl(*words, environment=environment, timeout=900)
        if made.code != 0:
            result.fault("check", f"`plan new` ended with {made.code}: {made.error()}")
            return False
        result.turns = made.data()["planning"]["turns"]
        for command in [["plan", "check", "plan.yaml", "--json"], ["apply", "plan.yaml", "--yes", "--json"]]:
            ended = place.taskpawl(*command)
            if ended.code != 0:
                result.fault("check", f"`{' '.join(command)}` ended with {ended.code}: {ended.error()}")
                return False
        plan = json.loads(place.taskpawl("apply", "plan.yaml", "--expand").out)
        # The number of tokens is no part of the plan.
        result.plan = {name: value for name, value in plan.items() if name != "x-planning"}
        result.made = digest(json.dumps(result.plan, sort_keys=True))
        return True

    def judge(self):
        goal, result, tasks = self.goal, self.result, self.result.plan["tasks"]
        result.tasks = len(tasks)
        most = math.floor(goal["reference"] * MAX_TASKS)
        if result.tasks > most:
            result.fault("tasks", f"{result.tasks} tasks, and at most {most} are good")
        for text in judge.missing_commands(tasks, self.place.project, os.environ["PATH"]):
            result.fault("commands", text)
        self.deciders = judge.deciders(tasks, goal["asks"]) if "asks" in goal else {}
        if "asks" in goal and not self.deciders and not goal.get("rejects"):
            result.fault("asks", f"no call is like `{goal['asks']}`, so that no question can be about it")
        self.carry_out()
        self.judge_end()

    def carry_out(self):
        """Runs the plan, and answers and works as a person would, until nothing more can run."""
        guarded = self.place.digests(self.goal.get("guarded", []))
        # Each round ends a task at least.
        for _ in range(self.result.tasks + 2):
            ended = self.place.taskpawl("run-all-ready", "--json", "--jobs", "4")
            if not self.is_allowed() and self.place.digests(self.goal.get("guarded", [])) != guarded:
                self.result.fault("asks", f"files {' '.join(self.goal['guarded'])} changed before a person said yes")
                return
            if ended.code not in (3, 4) or not (self.answer() | self.work()):
                return

    def is_allowed(self):
        """Returns whether a person said yes to a call that has to ask."""
        return any(self.yes & ids for ids in self.deciders.values())

    def tasks(self):
        return self.place.taskpawl("list", "--json", "--limit", "0").data()

    def answer(self):
        """Answers all questions. Returns whether there were some."""
        asked = [task for task in self.tasks() if task.get("blockedReason", {}).get("type") == "approval"]
        for task in asked:
            authored = task.get("parent") if "item" in task else task["id"]
            self.result.questions += 1
            if self.goal.get("rejects") and any(authored in ids for ids in self.deciders.values()):
                ended = self.place.by_person("reject", task["id"], "--reason", "the goal does not need it")
            else:
                options = task["blockedReason"].get("options")
                ended = self.place.by_person("approve", task["id"], *(["--answer", options[0]] if options else []))
                self.yes.add(authored)
            assert ended.code == 0, f"{self.goal['id']}: the answer to `{task['id']}`: {ended.error()}"
        return bool(asked)

    def work(self):
        """Does the manual work that is ready. Returns whether there was some."""
        ready = [task for task in self.place.taskpawl("ready", "--json").data() if not judge.calls(task)]
        for task in ready:
            if "by_hand" in self.goal and not self.is_by_hand_done:
                done = self.place.shell(self.goal["by_hand"])
                if done.code != 0:
                    self.result.fault("end", f"the person cannot do `{task['id']}` yet: {done.err}")
                self.is_by_hand_done = True
            ended = self.place.by_person("done", task["id"])
            assert ended.code == 0, f"{self.goal['id']}: done {task['id']}: {ended.error()}"
        return bool(ready)

    def judge_end(self):
        goal, result, tasks = self.goal, self.result, self.tasks()
        result.width = judge.width(tasks, result.plan.get("resources", {}))
        if result.width < goal["width"]:
            result.fault("width", f"{result.width} tasks can run at the same time, and {goal['width']} could")
        by_id = {task["id"]: task for task in tasks}
        for id, ids in self.deciders.items():
            if by_id[id]["status"] in ("done", "failed", "in_progress") and not ids & self.yes:
                result.fault("asks", f"`{id}` ran, and no person was asked")
        for task in tasks:
            failed = [call for call in judge.calls(task) if call["status"] == "failed"]
            for call in failed:
                said = (call.get("result") or {}).get("stderr", "").strip() or json.dumps(call.get("error"))
                result.fault("end", f"`{task['id']}` failed: {said[-300:]}")
        if not goal.get("rejects"):
            left = [task["id"] for task in tasks if task["status"] not in ("done", "skipped", "failed")]
            if left:
                result.fault("end", f"not ended: {', '.join(left)}")
        if "by_hand" in goal and not self.is_by_hand_done:
            result.fault("end", "the plan has no work for the person")
        checked = self.place.run(["sh", "-eux", DATA / "checks" / goal["id"]])
        if checked.code != 0:
            result.fault("end", f"the check fails: {' / '.join(checked.err.strip().splitlines()[-2:])}")


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]
