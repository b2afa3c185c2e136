"""Graphs of the benchmarks, which have to match `src/shape.rs`, and measurement of a run."""

import json
import resource
import sys
import time


def needs(shape, task, tasks):
    width = -(-tasks // 100)
    if shape == "chain":
        return [task - 1] if task else []
    if shape == "wide":
        return list(range(task)) if task + 1 == tasks else []
    if shape == "layered":
        if task < width:
            return []
        first = (task // width - 1) * width
        return sorted({first + task * step % width for step in (1, 7, 31)})
    raise SystemExit(f"no such shape: {shape}")


def arguments():
    shape, tasks = sys.argv[1], int(sys.argv[2])
    return [needs(shape, task, tasks) for task in range(tasks)]


def cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def report(run):
    """Calls `run` and prints its cost in microseconds."""
    before, begin = cpu(), time.monotonic()
    run()
    wall = time.monotonic() - begin
    print(json.dumps({"cpuMicros": (cpu() - before) * 1e6, "wallMicros": wall * 1e6}))
