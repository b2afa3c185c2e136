"""Calls that a worker refuses: forged, altered, repeated and misdirected ones, and those that its own policy does not allow."""

import http.client
import http.server
import json
import os
import subprocess
import threading

from restate_lab import ROOT, WORK, WORKER, Lab, Server, Worker, fail, setup_starts, starts, trust


class Recorder(http.server.BaseHTTPRequestHandler):
    """Passes requests to the ingress, and keeps the signed calls."""

    target = None
    seen = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        Recorder.seen.append((self.path, body))
        ingress = http.client.HTTPConnection("127.0.0.1", Recorder.target, timeout=120)
        names = ("content-type", "accept", "idempotency-key")
        ingress.request("POST", self.path, body, {name: self.headers[name] for name in names if self.headers[name]})
        answer = ingress.getresponse()
        content = answer.read()
        self.send_response(answer.status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        pass


def deliver(lab, path, envelope, key):
    """Sends a call to a worker through the ingress, and returns the end."""
    ingress = http.client.HTTPConnection("127.0.0.1", lab.server.ingress, timeout=60)
    headers = {"content-type": "application/json", "accept": "application/json", "idempotency-key": key}
    ingress.request("POST", path, json.dumps(envelope), headers)
    answer = ingress.getresponse()
    content = answer.read()
    if answer.status != 200:
        return {"status": answer.status, "text": content.decode()}
    return json.loads(content)


def test_forged_calls():
    """A recorded call is sent again in every altered form: nothing starts."""
    lab = setup_starts("forged", 1, 0, True, workers=2)
    Recorder.target = lab.server.ingress
    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    flags = lab.coordinator.engine()
    flags[flags.index("--restate-url") + 1] = f"http://127.0.0.1:{proxy.server_address[1]}"
    code, out, err = lab.coordinator.run("run-all-ready", "plan.yaml", *flags)
    if code or starts(lab.project) != {"t0": 1}:
        fail(f"forged: the positive control: exit {code}, {starts(lab.project)}\n{out}\n{err}")
    path, body = next((path, body) for path, body in Recorder.seen if path.endswith("/call"))
    envelope = json.loads(body)
    call = json.loads(envelope["call"])
    other = path.replace("forged-w0", "forged-w1") if "forged-w0" in path else path.replace("forged-w1", "forged-w0")

    def altered(**fields):
        return {**envelope, "call": json.dumps({**call, **fields})}

    args = {**call["args"], "command": "echo forged >> starts/0"}
    matrix = {
        "unsigned": (path, {**envelope, "signature": ""}, "signature"),
        "another signature": (path, {**envelope, "signature": envelope["signature"][::-1]}, "signature"),
        "other arguments": (path, altered(args=args), "signature"),
        "another task": (path, altered(task="forged"), "signature"),
        "another start": (path, altered(ticket={**call["ticket"], "start": 2}), "signature"),
        "another tool": (path, altered(call={**call["call"], "spec": {**call["call"]["spec"], "toolName": "exec"}}), "signature"),
        "a wider sandbox": (path, altered(sandbox={"net": True}), "signature"),
        "another origin": (path, altered(call={**call["call"], "origin": "cli"}), "signature"),
        "a later expiry": (path, {**envelope, "expires": envelope["expires"] + 1}, "signature"),
        "an earlier expiry": (path, {**envelope, "expires": 1}, "signature"),
        "another key": (path, {**envelope, "sender": "taskpawl-ed25519-" + "A" * 43}, "not trusted"),
        "another protocol": (path, {**envelope, "protocol": 2}, "protocol 2"),
        "another worker": (other, envelope, "the call is for"),
        "a replay": (path, envelope, "ticket was used before"),
    }
    for name, (to, forged, reason) in matrix.items():
        end = deliver(lab, to, forged, f"forged-{name}".replace(" ", "-"))
        outcome = end.get("outcome", {})
        # A call that ended a moment ago gives its end again: nothing starts.
        is_joined = name == "a replay" and outcome.get("type") == "succeeded"
        if not is_joined and (outcome.get("type") != "failed" or reason not in outcome["error"]["message"]):
            fail(f"forged: {name}: {end}")
    for worker in lab.workers:
        worker.stop()
        worker.start()
    end = deliver(lab, path, envelope, "forged-after-restart")
    if "ticket was used before" not in json.dumps(end):
        fail(f"forged: a replay after a restart: {end}")
    if starts(lab.project) != {"t0": 1}:
        fail(f"forged: {starts(lab.project)}")
    proxy.shutdown()
    lab.close()
    print(f"  {len(matrix) + 1} altered calls: 0 starts")


def test_ceilings():
    """The policy of the worker's machine is a second ceiling, and calls that an engine cannot carry are refused with the reason."""
    plan = """tasks:
  - {id: denied, call: {exec: {argv: [sh, -c, 'echo denied >> starts/0']}}}
  - {id: asks, call: {write_file: {path: starts/asks, content: asks}}}
  - {id: access, runsOn: far, calls: [{toolName: shell, planAccess: read, args: {command: 'echo access >> starts/0'}}]}
  - {id: allowed, run: 'echo allowed >> starts/0'}
"""
    lab = Lab("ceilings", workers=0, plan=plan)
    (lab.project / "starts").mkdir()
    home = WORK / "ceilings" / "worker-home"
    (home / "config" / "taskpawl").mkdir(parents=True)
    (home / "config" / "taskpawl" / "policy.toml").write_text('[[rules]]\ntool = "exec"\ndecision = "deny"\n\n[[rules]]\ntool = "write_file"\ndecision = "ask"\n')
    worker = Worker(lab.server, "ceilings-w", lab.project, home, labels=["far"])
    lab.workers.append(worker)
    trust(home, lab.coordinator)
    worker.start()
    code, out, err = lab.coordinator.run("run-all-ready", "plan.yaml", *lab.coordinator.engine())
    found = {task["id"]: (task["status"], task.get("error") or "") for task in lab.coordinator.tasks()}
    reasons = {"denied": "worker `ceilings-w` refuses the call: its policy denies it", "access": "planAccess",
               "asks": "its policy would ask, and no person can answer there"}
    for task, reason in reasons.items():
        if found[task][0] != "failed" or reason not in found[task][1]:
            fail(f"ceilings: {task}: {found[task]}\n{out}\n{err}")
    if found["allowed"][0] != "done" or set(starts(lab.project)) - {"allowed"}:
        fail(f"ceilings: {found}, {starts(lab.project)}\n{out}\n{err}")
    lab.close()
    print(f"  {({task: status for task, (status, _) in found.items()})}")


def test_canaries():
    """The value of a secret of a worker is neither in the engine's journal nor on the coordinator; arguments are, and are found."""
    plan = """tasks:
  - {id: shown, run: 'printf "%s marker-of-the-output" "${secret:CANARY}"'}
  - {id: asked, run: 'test -n "${secret:CANARY}" && echo marker-of-the-args'}
  - {id: broken, run: 'echo "${secret:CANARY}" >&2; exit 3'}
"""
    lab = Lab("canaries", workers=0, plan=plan)
    home = WORK / "canaries" / "worker-home"
    config = home / "config" / "taskpawl"
    config.mkdir(parents=True)
    canary = "canary-5d1f-71c2-value"
    (config / "value").write_text(canary)
    (config / "value").chmod(0o600)
    (config / "config.toml").write_text(f'[secrets.CANARY]\nfile = "{config / "value"}"\n')
    worker = Worker(lab.server, "canaries-w", lab.project, home)
    lab.workers.append(worker)
    trust(home, lab.coordinator)
    worker.start()
    code, out, err = lab.coordinator.run("run-all-ready", "plan.yaml", *lab.coordinator.engine())
    found = {task["id"]: task["status"] for task in lab.coordinator.tasks()}
    if found != {"shown": "done", "asked": "done", "broken": "failed"}:
        fail(f"canaries: {found}\n{out}\n{err}")
    said = out + err
    for args in (["show", "shown"], ["logs", "shown"], ["logs", "broken"], ["history", "--json"], ["list", "--json"]):
        code, out, err = lab.coordinator.run(*args)
        said += out + err
    files = [path for path in lab.home.rglob("*") if path.is_file()]
    said += "".join(path.read_bytes().decode("latin-1") for path in files)
    journal = json.dumps(query(lab, "SELECT * FROM sys_journal")) + json.dumps(query(lab, "SELECT * FROM sys_invocation"))
    journal += "".join(bytes.fromhex(word).decode("latin-1") for word in journal.split('"') if len(word) > 8 and is_hex(word))
    for place, text in (("coordinator", said), ("journal", journal)):
        if canary in text:
            fail(f"canaries: the value is on the {place}")
        if "marker-of-the" not in text:
            fail(f"canaries: the positive control: no marker on the {place}: {text[:500]}")
    lab.close()
    print("  3 calls with a secret: 0 values outside the worker; arguments and results are readable in the journal")


def test_escapes():
    """Programs on a worker get out of its sandbox by none of the ways that are tried at home."""
    server = Server("escapes")
    server.start()
    # The programs are those of the test command, with its features: nothing is compiled twice.
    command = ["cargo", "test", "--quiet", "--locked", "--features", "taskpawl-mcp/conformance", "--test", "it", "on_a_worker", "--", "--ignored", "--nocapture"]
    engine = f"http://127.0.0.1:{server.ingress} http://127.0.0.1:{server.admin} {WORKER}"
    tried = subprocess.run(command, cwd=ROOT, env=os.environ | {"TASKPAWL_TEST_ENGINE": engine}, capture_output=True, text=True)
    server.end()
    if tried.returncode or "1 passed" not in tried.stdout:
        fail(f"escapes: exit {tried.returncode}\n{tried.stdout[-5000:]}\n{tried.stderr[-5000:]}")
    print("\n".join(f"  {line}" for line in tried.stdout.splitlines() + tried.stderr.splitlines() if " ways tried" in line or "the control" in line))


def is_hex(word):
    return len(word) % 2 == 0 and all(c in "0123456789abcdef" for c in word)


def query(lab, sql):
    """Asks the server for rows of its journal."""
    admin = http.client.HTTPConnection("127.0.0.1", lab.server.admin, timeout=60)
    headers = {"content-type": "application/json", "accept": "application/json"}
    admin.request("POST", "/query", json.dumps({"query": sql}), headers)
    return json.loads(admin.getresponse().read())["rows"]
