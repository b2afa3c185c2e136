"""Gives work to coding agents that others wrote: `try.py TASKPAWL DIRECTORY`. `test-agents` has installed them below the directory."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

taskpawl, work = sys.argv[1], Path(sys.argv[2]).resolve()
home, project = work / "home", work / "project"
bin_directory = work / "agents/node_modules/.bin"
# Programs of a run see neither the variables of this machine's agents nor its accounts.
environment = {"HOME": str(home), "PATH": f"{bin_directory}:{os.environ['PATH']}", "STAND_IN_KEY": "stand-in-key-0001", "LANG": "C.UTF-8"}


def start_model():
    model = subprocess.Popen([sys.executable, str(Path(__file__).parent / "model.py"), str(work / "port")])
    for _ in range(100):
        if (work / "port").exists() and (work / "port").read_text():
            return model, (work / "port").read_text()
        time.sleep(0.1)
    raise SystemExit("the model has no port")


def write_files(port):
    for directory in [project, home / ".claude", home / ".codex", home / ".config/taskpawl"]:
        directory.mkdir(parents=True)
    (home / ".claude.json").write_text("{}")
    (home / ".codex/config.toml").write_text(
        f'model = "stand-in"\nmodel_provider = "local"\n[model_providers.local]\nname = "local"\n'
        f'base_url = "http://127.0.0.1:{port}/v1"\nwire_api = "responses"\nenv_key = "CODEX_API_KEY"\n'
    )
    (home / ".config/taskpawl/config.toml").write_text(
        f"""
[sandbox]
read = ["{work}/agents"]
write = ["{home}/.claude", "{home}/.claude.json", "{home}/.codex"]
[secrets.key]
env = "STAND_IN_KEY"
[agents.claude]
command = ["claude-code-acp"]
hosts = []
write = []
env = {{ ANTHROPIC_BASE_URL = "http://127.0.0.1:{port}", ANTHROPIC_API_KEY = "${{secret:key}}", DISABLE_AUTOUPDATER = "1", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC = "1" }}
[agents.codex]
command = ["codex-acp"]
hosts = []
write = []
auth = "codex-api-key"
env = {{ CODEX_API_KEY = "${{secret:key}}" }}
"""
    )
    (home / ".config/taskpawl/policy.toml").write_text(
        '[[rules]]\ndecision = "deny"\nargv = "touch denied"\n[[rules]]\ndecision = "ask"\nargv = "touch asked"\n'
    )


def run(*arguments):
    return subprocess.run([taskpawl, *arguments], cwd=project, env=environment, capture_output=True, text=True, timeout=200)


def by_person(*arguments):
    """Runs a command as a person at a terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(project)
        os.execve(taskpawl, [taskpawl, *arguments], environment)
    said = b""
    try:
        while piece := os.read(terminal, 4096):
            said += piece
    except OSError:
        pass
    _, status = os.waitpid(pid, 0)
    assert status == 0, said.decode()


def plan(name, agent, prompt, **more):
    arguments = {"prompt": prompt, "using": agent, **more}
    call = {"agent": arguments, "idempotent": name == "killed"}
    tasks = [{"id": f"{name}-{agent}", "call": call}]
    (project / f"{name}-{agent}.json").write_text(json.dumps({"name": f"{name}-{agent}", "tasks": tasks}))


def go(name, agent, port, code=0):
    ended = run("run-all-ready", "--plan", f"{name}-{agent}.json", "--allow-port", port)
    assert ended.returncode == code, f"{name} {agent}: {ended.returncode}\n{ended.stdout}{ended.stderr}"
    return shown(name, agent)


def shown(name, agent):
    data = json.loads(run("show", f"{name}-{agent}", "--json").stdout)["data"]
    return data["metadata"]["toolCalls"][0]


def killed_and_gone_on(agent, port):
    plan("killed", agent, "WAIT")
    argv = [taskpawl, "run-all-ready", "--plan", f"killed-{agent}.json", "--allow-port", port]
    first = subprocess.Popen(argv, cwd=project, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(300):
        log = run("logs", f"killed-{agent}").stdout
        if "[session " in log:
            break
        time.sleep(0.1)
    time.sleep(3)
    first.send_signal(signal.SIGKILL)
    first.wait()
    call = go("killed", agent, port)
    assert call["status"] == "succeeded" and call["attempts"] == 2, call
    session = log.split("[session ")[1].split("]")[0]
    is_same = call["result"]["session"] == session
    assert "gone on" in call["result"]["text"] or not is_same, call
    # Claude Code cannot load a session that was killed before its first answer. The call then says so and starts over.
    assert is_same or agent == "claude", (session, call)
    return "gone on in its session" if is_same else "started over: it cannot load a session without an answer"


def try_agent(agent, port):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    plan("schema", agent, "How many?", schema=schema)
    result = go("schema", agent, port)["result"]
    assert (result["json"], result["turns"]) == ({"n": 3}, 2), result
    print(f"{agent}: an answer repaired")
    plan("done", agent, "RUN touch done-by-" + agent)
    assert go("done", agent, port)["result"]["stopReason"] == "end_turn"
    assert (project / f"done-by-{agent}").exists()
    print(f"{agent}: done")

    plan("denied", agent, "RUN touch denied")
    go("denied", agent, port)
    assert not (project / "denied").exists()
    assert "[refused]" in run("logs", f"denied-{agent}").stdout
    print(f"{agent}: refused by the policy")

    plan("asked", agent, "RUN touch asked")
    go("asked", agent, port, code=3)
    by_person("approve", f"asked-{agent}", "--answer", "yes")
    ended = run("run-all-ready", "--allow-port", port)
    log = run("logs", f"asked-{agent}").stdout
    print(f"{agent}: asked, {'and approved' if '[allowed]' in log else 'approved, but not asked again'}: exit {ended.returncode}")

    print(f"{agent}: killed, and {killed_and_gone_on(agent, port)}")


model, port = start_model()
try:
    write_files(port)
    assert run("init").returncode == 0
    checked = run("agents", "--check", "--json")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    # Codex is found and answers; it runs commands in a sandbox of its own alone, which did not work inside of ours.
    try_agent("claude", port)
finally:
    model.kill()
