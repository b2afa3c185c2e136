"""Runs one plan that calls six MCP servers, and checks what they returned. Called by `test-mcp-servers`."""

import http.server
import json
import pathlib
import subprocess
import sys
import threading

TASKPAWL, WORK = sys.argv[1], pathlib.Path(sys.argv[2])
PROJECT = WORK / "project"


class Page(http.server.BaseHTTPRequestHandler):
    """What the server `fetch` is to fetch: no test reaches for the network beyond this machine."""

    def do_GET(self):
        is_page = self.path == "/page"
        body = b"<html><body><h1>Release notes</h1><p>All is well.</p></body></html>" if is_page else b""
        self.send_response(200 if is_page else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def taskpawl(*words, expected=0):
    ended = subprocess.run([TASKPAWL, *words], cwd=PROJECT, capture_output=True, text=True, timeout=240)
    if ended.returncode != expected:
        print(f"`taskpawl {' '.join(words)}` exited with {ended.returncode}, expected {expected}", file=sys.stderr)
        print(ended.stdout[-8000:], ended.stderr[-8000:], file=sys.stderr)
        sys.exit(1)
    return ended.stdout


def npm(name, *args, **more):
    program = WORK / "servers/node_modules/.bin" / f"mcp-server-{name}"
    return {"command": str(program), "args": [str(arg) for arg in args], **more}


def pypi(name, *args):
    return {"command": str(WORK / "servers/venv/bin" / f"mcp-server-{name}"), "args": [str(arg) for arg in args]}


def configure():
    """Names the servers in a file as other programs write it, and in the configuration the file, and what is allowed beyond the sandbox."""
    servers = {
        "filesystem": npm("filesystem", PROJECT),
        "everything": npm("everything", "stdio"),
        "memory": npm("memory", env={"MEMORY_FILE_PATH": str(PROJECT / "memory.jsonl")}),
        "git": pypi("git", "--repository", PROJECT),
        "time": pypi("time", "--local-timezone", "UTC"),
        "fetch": pypi("fetch", "--ignore-robots-txt", "--allow-private-ips"),
    }
    settings = WORK / "home/settings.json"
    settings.write_text(json.dumps({"mcpServers": servers}))
    lines = [f"[mcp]\nconfigs = [{json.dumps(str(settings))}]\n"]
    for name in servers:
        net = "true" if name == "fetch" else "false"
        lines.append(f"[mcpServers.{name}]\nsandbox = {{ net = {net}, read = [{json.dumps(str(WORK / 'servers'))}] }}\n")
    (WORK / "config/taskpawl/config.toml").write_text("\n".join(lines))


def prepare_project():
    run = lambda *argv: subprocess.run(argv, cwd=PROJECT, check=True, capture_output=True)
    run("git", "init", "-q", "-b", "main")
    (PROJECT / "notes.txt").write_text("first line\n")
    run("git", "add", "notes.txt")
    run("git", "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "the first commit")
    taskpawl("init")


def plan(address):
    def task(id, tool, args, *needs):
        return {"id": id, "call": {tool: args}, "needs": list(needs)}

    entity = {"name": "taskpawl", "entityType": "program", "observations": ["runs plans"]}
    return {
        "version": 1,
        "name": "servers",
        "tasks": [
            task("write", "filesystem/write_file", {"path": str(PROJECT / "made.txt"), "content": "made by a call"}),
            task("read", "filesystem/read_text_file", {"path": str(PROJECT / "made.txt")}, "write"),
            task("sum", "everything/get-sum", {"a": 19, "b": 23}),
            task("weather", "everything/get-structured-content", {"location": "New York"}),
            task("long", "everything/trigger-long-running-operation", {"duration": 1, "steps": 4}),
            task("image", "everything/get-tiny-image", {}),
            task("remember", "memory/create_entities", {"entities": [entity]}),
            task("recall", "memory/search_nodes", {"query": "taskpawl"}, "remember"),
            task("log", "git/git_log", {"repo_path": str(PROJECT), "max_count": 1}),
            task("status", "git/git_status", {"repo_path": str(PROJECT)}, "write"),
            task("time", "time/convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}),
            task("fetch", "fetch/fetch", {"url": f"{address}/page"}),
            task("echo", "everything/echo", {"message": "${{ tasks.read.result.content }}"}, "read"),
            # What has to fail, and say why.
            task("outside", "filesystem/read_text_file", {"path": "/etc/hostname"}),
            task("missing", "fetch/fetch", {"url": f"{address}/nothing"}),
        ],
    }


def check(tasks):
    def result(id):
        task = tasks[id]
        assert task["status"] == "done", (id, task["status"], task.get("error"))
        return json.dumps(task.get("result"))

    def contains(id, *words):
        for word in words:
            assert word in result(id), (id, word, result(id)[:2000])

    contains("read", "made by a call")
    contains("echo", "made by a call")
    contains("sum", "42")
    assert isinstance(tasks["weather"]["result"], dict), tasks["weather"]["result"]
    contains("weather", "temperature")
    contains("long", "4")
    contains("image", "image/png", "data")
    contains("recall", "runs plans")
    contains("log", "the first commit")
    contains("status", "made.txt")
    contains("time", "21:00")
    contains("fetch", "All is well")
    for id, word in [("outside", "denied"), ("missing", "404")]:
        assert tasks[id]["status"] == "failed", (id, tasks[id]["status"])
        assert word in json.dumps(tasks[id]), (id, tasks[id])
    assert (PROJECT / "made.txt").read_text() == "made by a call"


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    configure()
    prepare_project()
    file = PROJECT / "plan.json"
    file.write_text(json.dumps(plan(address)))
    taskpawl("run-all-ready", "--plan", str(file), "--jobs", "4", expected=1)
    tasks = {task["id"]: task for task in json.loads(taskpawl("list", "--limit", "0", "--json"))["data"]}
    check(tasks)
    tools = json.loads(taskpawl("tools", "list", "--json"))["data"]
    servers = {tool["name"].split("/")[0]: 0 for tool in tools if "/" in tool["name"]}
    for tool in tools:
        if "/" in tool["name"]:
            servers[tool["name"].split("/")[0]] += 1
    assert sorted(servers) == ["everything", "fetch", "filesystem", "git", "memory", "time"], servers
    # Without a run, what is known of the tools is enough to refuse what does not fit.
    (PROJECT / "wrong.json").write_text(json.dumps({"tasks": [{"id": "x", "call": {"everything/get-sum": {"a": "1"}}}]}))
    taskpawl("plan", "check", str(PROJECT / "wrong.json"), expected=7)
    called = json.loads(taskpawl("tools", "call", "time/get_current_time", "--args", '{"timezone": "UTC"}', "--json"))
    assert called["data"]["status"] == "succeeded", called
    print("six servers:", ", ".join(f"{name} ({count} tools)" for name, count in sorted(servers.items())))


main()
