"""Judgements about plans: commands that do not exist, tasks that can run at the same time, calls that a person has to be asked about."""

import json
import re
import shlex
import shutil

# Commands that a shell has itself.
BUILTINS = set(
    ": . [ alias break cd command continue echo eval exec exit export false getopts hash local printf pwd read readonly return set shift "
    "source test times trap true type ulimit umask unset wait".split()
)
# Words after which a command begins, and words that end a construct.
KEYWORDS = set("! { } if then else elif fi while until do done time".split())
INTERPRETERS = {"sh", "bash", "python3", "python"}


def calls(task):
    return task["metadata"]["toolCalls"]


def programs(script):
    """Returns the commands of a script, each as a list of words. Leaves out what only a shell can read."""
    # An expression of the plan is one word.
    script = re.sub(r"\$\{\{.*?\}\}", "EXPRESSION", script)
    lexer = shlex.shlex(script, posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t", True, "#"
    try:
        tokens = list(lexer)
    except ValueError:
        return []
    found, words, skips = [], [], False
    for token in tokens:
        if set(token) <= set("<>&") and set(token) & set("<>"):
            if "<<" in token:
                break
            skips = True
        elif set(token) <= set("();<>|&\n"):
            found, words, skips = [*found, words], [], False
        elif skips:
            skips = False
        elif not words and (token in KEYWORDS or re.match(r"\w+=", token)):
            continue
        else:
            words.append(token)
    # The list of a loop has no commands; `case` has a grammar of its own.
    return [words for words in [*found, words] if words and words[0] not in {"for", "case", "esac"}]


def missing_commands(tasks, project, path):
    """Returns the commands of a plan that do not exist: programs, scripts of interpreters, and targets of `make`."""
    targets = set()
    if (project / "Makefile").is_file():
        targets = set(re.findall(r"^([\w./-]+):", (project / "Makefile").read_text(), re.MULTILINE))
    texts = {task["id"]: json.dumps([call["args"] for call in calls(task)]) for task in tasks}

    def exists(file, id):
        # Another task may make a script, and the value of a variable is not known.
        is_made = any(file in text for other, text in texts.items() if other != id)
        return (project / file).is_file() or is_made or "EXPRESSION" in file or "$" in file

    def missing(program, words, id):
        if program not in BUILTINS and not shutil.which(program, path=path) and not exists(program, id):
            return f"program {program}"
        # The first word after options may belong to one of them.
        first = words[0] if words and not words[0].startswith("-") else None
        if program in INTERPRETERS and first and not exists(first, id):
            return f"script {first}"
        if program == "make" and first and "=" not in first and first not in targets:
            return f"target {first}"
        return None

    commands = [(task["id"], words) for task in tasks for call in calls(task) for words in commands_of(call)]
    found = [(id, missing(program, words, id)) for id, (program, *words) in commands]
    return [f"`{id}`: there is no {text}" for id, text in found if text]


def commands_of(call):
    args = call["args"]
    if call["toolName"] == "exec" and args.get("argv"):
        return [args["argv"]]
    return programs(args["command"]) if call["toolName"] == "shell" else []


def order(tasks):
    """Returns for each task the tasks that end before its own calls start."""
    by_id = {task["id"]: task for task in tasks}
    parents = {child: task["id"] for task in tasks for child in task["subtasks"]}

    def below(id):
        return {id}.union(*(below(child) for child in by_id[id]["subtasks"] if child in by_id))

    def line(id):
        return [id, *(line(parents[id]) if id in parents else [])]

    before = {}
    for id in by_id:
        needs = [need for one in line(id) for need in by_id[one]["dependencies"] if need in by_id]
        before[id] = set().union(below(id) - {id}, *map(below, needs))
    # A plan has no circles, so this ends.
    while True:
        closed = {id: ids.union(*(before[one] for one in ids)) for id, ids in before.items()}
        if closed == before:
            return before
        before = closed


def width(tasks, capacities):
    """Returns the most calls and manual tasks that can be worked on at the same time. `tasks` are those of a store, with the copies of
    loops."""
    before = order(tasks)
    loops = {child: task for task in tasks if task.get("forEach") for child in task["subtasks"]}
    # The calls of a loop are in its copies.
    is_join = lambda task: not calls(task) and (task["subtasks"] or task.get("milestone"))
    works = [task for task in tasks if task["status"] != "skipped" and not task.get("forEach") and not is_join(task)]

    def fits(task, chosen):
        if any(task["id"] in before[one["id"]] or one["id"] in before[task["id"]] for one in chosen):
            return False
        if any(set(task.get("writes", [])) & set(one.get("writes", [])) for one in chosen):
            return False
        for name, units in task.get("resources", {}).items():
            if units + sum(one.get("resources", {}).get(name, 0) for one in chosen) > capacities.get(name, 1):
                return False
        loop = loops.get(task["id"])
        most = loop and loop["forEach"].get("concurrency")
        return not most or sum(loops.get(one["id"]) is loop for one in chosen) < most

    def best(rest, chosen):
        """Returns the most calls of tasks of `rest` that can run with those chosen, and with each other."""
        rest = [task for task in rest if fits(task, chosen)]
        if not rest:
            return 0
        task, *others = rest
        count = len(calls(task)) if calls(task) and task.get("mode") == "parallel" else 1
        with_it = count + best(others, [*chosen, task])
        # A task that gets in the way of no other is never left out, which keeps this short.
        return with_it if all(fits(one, [task]) for one in others) else max(with_it, best(others, chosen))

    return best(works, [])


def deciders(tasks, pattern):
    """Returns each task with a call of this pattern, with the tasks whose question may be about it: the task itself, a parent, and a
    task without work that it needs."""
    by_id = {task["id"]: task for task in tasks}
    parents = {child: task["id"] for task in tasks for child in task["subtasks"]}
    found = {}
    for task in tasks:
        # As text, a list of words reads like the command that it is.
        values = [value for call in calls(task) for value in call["args"].values()]
        text = "\n".join(" ".join(map(str, value)) if isinstance(value, list) else str(value) for value in values)
        if not re.search(pattern, text):
            continue
        ids, one = {task["id"]}, task["id"]
        while one in parents:
            one = parents[one]
            ids.add(one)
        ids.update(need for need in task["dependencies"] if need in by_id and not calls(by_id[need]))
        found[task["id"]] = ids
    return found
