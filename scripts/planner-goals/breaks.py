"""Ways to break a good plan, for the test of the evaluation: each has to be found, by the criterion that it is about."""

import copy
import itertools
import json
import math

import judge
from evaluation import MAX_TASKS


def breaks(goal, plan):
    """Returns each broken plan as an answer of a planner, with a description and the criteria of which one has to find it."""
    deciders = judge.deciders(plan["tasks"], goal["asks"]) if "asks" in goal else {}
    found = []

    def add(description, criteria, change):
        broken = copy.deepcopy(plan)
        change(broken["tasks"])
        found.append((description, criteria, json.dumps(broken)))

    for index, task in enumerate(plan["tasks"]):
        # A plan may do without calls that a person rejects.
        if not (goal.get("rejects") and task["id"] in deciders) and not task["subtasks"]:
            add(f"without `{task['id']}`", {"end", "asks", "check"}, lambda tasks, index=index: leave_out(tasks, index))
    if goal["width"] > 1:
        add("one after the other", {"width"}, serialise)
    if deciders:
        add("without questions", {"asks"}, ask_nothing)
        if len(plan["tasks"]) > len(deciders):
            add("with a question about something else", {"asks"}, lambda tasks: ask_elsewhere(tasks, deciders))
    add("with an unknown command", {"commands"}, use_unknown_command)
    add("with too many tasks", {"tasks"}, lambda tasks: pad(tasks, goal["reference"]))
    add("with an unknown field", {"check"}, lambda tasks: tasks[0].update(rum="true"))
    return found


def leave_out(tasks, index):
    """Removes a task. Those that need it get what it needs, so that the others keep their order."""
    gone = tasks.pop(index)
    for task in tasks:
        if gone["id"] in task["dependencies"]:
            others = [id for id in task["dependencies"] if id != gone["id"]]
            task["dependencies"] = others + [id for id in gone["dependencies"] if id not in others]
        task["subtasks"] = [id for id in task["subtasks"] if id != gone["id"]]


def serialise(tasks):
    before = judge.order(tasks)
    line = sorted((task for task in tasks if not task["subtasks"]), key=lambda task: len(before[task["id"]]))
    for one, next_one in itertools.pairwise(line):
        if one["id"] not in next_one["dependencies"]:
            next_one["dependencies"].append(one["id"])
    for task in tasks:
        task.pop("mode", None)
        if "forEach" in task:
            task["forEach"]["concurrency"] = 1


def ask_nothing(tasks):
    for task in tasks:
        task.pop("approval", None)
        for call in judge.calls(task):
            call.pop("approval", None)


def ask_elsewhere(tasks, deciders):
    ask_nothing(tasks)
    about = set().union(*deciders.values())
    next(task for task in tasks if task["id"] not in about)["approval"] = "required"


def use_unknown_command(tasks):
    call = next(call for task in tasks for call in judge.calls(task) if call["toolName"] in ("shell", "exec"))
    if call["toolName"] == "shell":
        call["args"]["command"] = "no-such-program --now\n" + call["args"]["command"]
    else:
        call["args"]["argv"][0] = "no-such-program"


def pad(tasks, reference):
    call = {"toolName": "shell", "args": {"command": "true"}}
    for number in range(math.floor(reference * MAX_TASKS) + 1 - len(tasks)):
        more = {"id": f"more-{number}", "name": "More is done", "dependencies": [], "subtasks": []}
        tasks.append(more | {"metadata": {"toolCalls": [call]}})
