"""Figures of calls on workers, and a large run through kills. The figures are strict in the full run, on a quiet machine, alone."""

import asyncio
import json
import resource
import time

from restate_lab import FULL, Lab, check_started_once, fail, setup_starts, starts

# Calls a second through workers, and CPU of a coordinator for a call beyond that of a run at home.
LEAST_RATE = 600 if FULL else 50
MOST_MICROSECONDS = 150 if FULL else 5_000


def cpu_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed_run(coordinator, name, *flags):
    """The wall time and the CPU of a run that has a plan of its own, in seconds."""
    code, out, err = coordinator.run("apply", f"{name}.yaml")
    if code:
        fail(f"apply: {err[-1000:]}")
    wall, cpu = time.monotonic(), cpu_of_children()
    code, out, err = coordinator.run("run-all-ready", "--only", f"plan:{name}", "--jobs", "256", *flags, "--quiet")
    if code:
        fail(f"figures: exit {code}\n{out[-1000:]}\n{err[-1000:]}")
    return time.monotonic() - wall, cpu_of_children() - cpu


async def bare_requests(server, service, count, connections):
    """Calls a handler that does nothing, over connections that stay open."""
    body = json.dumps({"key": "none", "start": 1}).encode()
    request = (f"POST /{service}/stop HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
               f"content-length: {len(body)}\r\n\r\n").encode() + body

    async def client():
        reader, writer = await asyncio.open_connection("127.0.0.1", server.ingress)
        for _ in range(count // connections):
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            if b" 200 " not in head.split(b"\r\n")[0] or b"content-length: 0" not in head:
                fail(f"bare ingress: {head.decode()}{(await reader.read(500)).decode()}")
        writer.close()

    begin = time.monotonic()
    await asyncio.gather(*(client() for _ in range(connections)))
    return count // connections * connections / (time.monotonic() - begin)


def test_slots():
    """Pauses on three workers with four slots each take little more than their sum divided by the slots."""
    count, pause = 300, 0.1
    tasks = "".join(f"  - {{id: t{at}, call: {{sleep: {{duration: 100ms}}}}}}\n" for at in range(count))
    lab = Lab("slots", plan="tasks:\n" + tasks)
    code, out, err = lab.coordinator.run("apply", "plan.yaml")
    if code:
        fail(f"apply: {err[-1000:]}")
    begin = time.monotonic()
    code, out, err = lab.coordinator.run("run-all-ready", *lab.coordinator.engine())
    took, ideal = time.monotonic() - begin, count * pause / 12
    by_worker = {}
    for task in lab.coordinator.tasks():
        worker = task["metadata"]["toolCalls"][0].get("worker")
        by_worker[worker] = by_worker.get(worker, 0) + 1
    # Debug builds and the start of the program cost some of the time.
    if code or took > ideal * (1.2 if FULL else 4) or len(by_worker) != 3:
        fail(f"slots: exit {code}, {took:.2f} s, ideal {ideal:.2f} s, {by_worker}\n{err[-1000:]}")
    lab.close()
    print(f"  {count} × {pause} s on 12 slots: {took:.2f} s, {took / ideal:.2f} × ideal, {by_worker}")


def test_large_run():
    """Many calls in one run, with a killed worker and a killed server: each starts once, and none is lost."""
    count = 100_000 if FULL else 1_000
    lab = setup_starts("large", count, 0, False)
    code, out, err = lab.coordinator.run("apply", "plan.yaml")
    if code:
        fail(f"apply: {err[-1000:]}")
    begin = time.monotonic()
    run = lab.coordinator.begin("run-all-ready", *lab.coordinator.engine(), "--quiet")
    kills = [lab.workers[0], lab.server]
    while kills and run.poll() is None:
        if len(starts(lab.project)) > count * (3 - len(kills)) // 4:
            victim = kills.pop(0)
            victim.kill()
            victim.start()
        time.sleep(1 if FULL else 0.2)
    out, err = run.communicate(timeout=3600)
    states = lab.coordinator.states()
    check_started_once(lab, "large run")
    interrupted = states.get("blockedinterrupted", 0)
    if kills or set(states) - {"done", "blockedinterrupted"} or sum(states.values()) != count or interrupted > lab.workers[0].slots:
        fail(f"large run: {len(kills)} kills left, {states}\n{out[-2000:]}\n{err[-2000:]}")
    lab.close()
    print(f"  {count} calls in {time.monotonic() - begin:.0f} s, 1 worker and 1 server killed: {states}, 0 started twice, 0 lost")


def test_figures():
    """Calls that do nothing, through workers, at home, and beside them the bare ingress."""
    count = 20_000 if FULL else 2_000
    lab = Lab("figures", slots=64)
    for name in ("away", "home"):
        tasks = "".join(f"  - {{id: {name}{at}, call: {{log: {{message: x}}}}}}\n" for at in range(count))
        (lab.project / f"{name}.yaml").write_text(f"name: {name}\ntasks:\n{tasks}")
    away, cpu_away = timed_run(lab.coordinator, "away", *lab.coordinator.engine())
    home, cpu_home = timed_run(lab.coordinator, "home")
    bare = asyncio.run(bare_requests(lab.server, f"TaskpawlCall1.default.{lab.workers[0].name}", count, 64))
    lab.close()
    rate, more = count / away, (cpu_away - cpu_home) / count * 1e6
    print(f"  {count} calls: {rate:.0f} a second on three workers, {count / home:.0f} at home, {bare:.0f} requests a second to the ingress "
          f"alone; CPU of the coordinator {more:.0f} µs a call more than at home")
    if rate < LEAST_RATE or more > MOST_MICROSECONDS:
        fail(f"figures: at least {LEAST_RATE} calls a second, at most {MOST_MICROSECONDS} µs")
