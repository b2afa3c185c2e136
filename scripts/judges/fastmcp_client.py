"""The program as a Python client sees it (`fastmcp`): in both eras of the protocol, over standard input and output and by HTTP, and
ten agents at once. Called by `test-mcp-judges` as `fastmcp_client.py TASKPAWL WORK`."""

import asyncio
import json
import pathlib
import subprocess
import sys
import warnings
from contextlib import asynccontextmanager

import mcp_types
from fastmcp import Client
from fastmcp.client.messages import MessageHandler
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from fastmcp.exceptions import ToolError
from mcp import MCPError
from mcp.client.subscriptions import listen
from mcp.shared.exceptions import MCPDeprecationWarning

# The older era is what it is.
warnings.filterwarnings("ignore", category=MCPDeprecationWarning)
TASKPAWL, WORK = sys.argv[1], pathlib.Path(sys.argv[2])
ERAS = {"legacy": "2025-11-25", "auto": "2026-07-28"}
TOOLS = {"plan_show", "plan_write", "task_add", "task_get", "task_update", "task_delete", "ready_list", "run_ready"}
AGENTS, TASKS = 10, 60
# Whatever hangs fails: nothing here takes as long.
PATIENCE = 60


def project(name):
    directory = WORK / "projects" / name
    directory.mkdir(parents=True)
    subprocess.run([TASKPAWL, "init"], cwd=directory, check=True, capture_output=True)
    return directory


def stdio(directory):
    return StdioTransport(TASKPAWL, ["mcp", "--project", str(directory)], env=None, keep_alive=False)


@asynccontextmanager
async def over_http(directory):
    server = await asyncio.create_subprocess_exec(
        TASKPAWL, "mcp", "--http", "--json", cwd=directory, stdout=subprocess.PIPE
    )
    place = json.loads(await server.stdout.readline())["data"]
    try:
        yield lambda: StreamableHttpTransport(place["url"], headers={"Authorization": f"Bearer {place['token']}"})
    finally:
        server.terminate()
        await server.wait()


class Ears(MessageHandler):
    """Hears which addresses have changed."""

    def __init__(self):
        self.heard = asyncio.Queue()

    async def on_resource_updated(self, message):
        self.heard.put_nowait(str(message.params.uri))


async def call(client, tool, **arguments):
    result = await client.call_tool(tool, arguments)
    assert not result.is_error and result.structured_content is not None, result
    return result.structured_content


@asynccontextmanager
async def subscribed(client, ears, uri):
    """Yields what waits for the next change of an address, in the way of the era."""
    if client.protocol_version == "2025-11-25":
        await client.session.subscribe_resource(uri)
        yield lambda: asyncio.wait_for(ears.heard.get(), PATIENCE)
        await client.session.unsubscribe_resource(uri)
    else:
        async with listen(client.session, resource_subscriptions=[uri]) as changes:
            assert changes.honored.resource_subscriptions == [uri], changes.honored

            async def next_change():
                return str((await asyncio.wait_for(anext(changes), PATIENCE)).uri)

            # Everything counts as changed once, when it begins.
            assert await next_change() == uri
            yield next_change


async def lists(client):
    assert {tool.name for tool in await client.list_tools()} == TOOLS
    assert {"plan_goal", "resume_work", "review_failures"} <= {prompt.name for prompt in await client.list_prompts()}
    assert "taskpawl://digest" in {str(resource.uri) for resource in await client.list_resources()}
    templates = {template.uri_template for template in await client.list_resource_templates()}
    assert "taskpawl://task/{id}" in templates, templates
    assert "plan_show" in client.instructions
    if client.protocol_version == "2025-11-25":
        assert await client.ping()


async def works(client, ears):
    """Everything that an agent does with a plan, from its beginning to its end."""
    plan = {
        "tasks": [
            {"id": "look", "call": {"list_dir": {"path": "."}}},
            {"id": "hand", "name": "By hand", "needs": ["look"]},
        ]
    }
    written = await call(client, "plan_write", name="site", plan=plan, agent="ann", request_id="w1")
    assert written["created"] == ["look", "hand"], written
    assert await call(client, "plan_write", name="site", plan=plan, agent="ann", request_id="w1") == written
    await call(client, "task_add", id="last", name="The last one", needs=["hand"], agent="ann")
    run = await call(client, "run_ready", agent="ann")
    while run["state"] == "running":
        run = await call(client, "run_ready", run_id=run["run_id"], wait_s=10, agent="ann")
    assert run["counts"]["done"] == 1, run
    uri = "taskpawl://task/hand"
    async with subscribed(client, ears, uri) as next_change:
        claimed = await call(client, "ready_list", claim=True, agent="ann")
        assert claimed["claimed"]["id"] == "hand", claimed
        assert await next_change() == uri
        await call(client, "task_update", id="hand", action="done", result={"ok": True}, note="looked at", agent="ann")
    content = await client.read_resource(uri)
    task = json.loads(content[0].text)
    assert (task["status"], task["result"]) == ("done", {"ok": True}), task
    shown = await call(client, "plan_show", agent="ann")
    assert shown["counts"] == {"done": 2, "todo": 1}, shown


async def says(client):
    """Prompts, completion, and what is refused."""
    prompt = await client.get_prompt("resume_work", {"agent": "ann"})
    assert "Where it stands" in prompt.messages[0].content.text
    reference = mcp_types.ResourceTemplateReference(uri="taskpawl://task/{id}")
    completion = await client.complete(reference, {"name": "id", "value": "ha"})
    assert completion.values == ["hand"], completion
    try:
        await call(client, "task_update", id="none", action="done", agent="ann")
        raise AssertionError("a task that is not there was done")
    except ToolError as refused:
        assert "none" in str(refused), refused
    for wrong in (client.read_resource("taskpawl://task/none"), client.call_tool("no_such_tool", {})):
        try:
            await wrong
            raise AssertionError("there is no such thing")
        except MCPError as error:
            assert error.error.code in (-32602, -32002), error


async def whole(transport, mode, version):
    ears = Ears()
    async with Client(transport, mode=mode, message_handler=ears, timeout=PATIENCE) as client:
        assert client.protocol_version == version, client.protocol_version
        assert client.server_info.name == "taskpawl"
        await lists(client)
        await works(client, ears)
        await says(client)


async def agent(make, name, done):
    """One of many agents: takes what is ready until nothing is left."""
    async with Client(make(), timeout=PATIENCE) as client:
        while True:
            answer = await client.call_tool("ready_list", {"claim": True, "agent": name}, raise_on_error=False)
            if answer.is_error:
                assert "no manual task is ready" in answer.structured_content["error"]["message"], answer
                return
            taken = answer.structured_content["claimed"]
            await call(client, "task_update", id=taken["id"], action="done", result=name, agent=name)
            done.append((taken["id"], name))


async def many(make):
    """Every task is done once, by whoever took it, and each agent adds one more at the same time."""
    async with Client(make(), timeout=PATIENCE) as client:
        tasks = [{"id": f"t{n}"} for n in range(TASKS)]
        await call(client, "plan_write", name="many", plan={"tasks": tasks}, agent="lead")
        names = [f"agent-{n}" for n in range(AGENTS)]
        await asyncio.gather(*(call(client, "task_add", id=f"own-{name}", name=name, agent=name) for name in names))
        done = []
        await asyncio.gather(*(agent(make, name, done) for name in names))
        ids = sorted(id for id, _ in done)
        assert ids == sorted([f"t{n}" for n in range(TASKS)] + [f"own-{name}" for name in names]), ids
        for id, name in done:
            task = json.loads((await client.read_resource(f"taskpawl://task/{id}"))[0].text)
            assert (task["status"], task["result"]) == ("done", name), task


async def main():
    for mode, version in ERAS.items():
        await whole(stdio(project(f"fastmcp-stdio-{version}")), mode, version)
        print(f"stdio, {version}: ok")
        async with over_http(project(f"fastmcp-http-{version}")) as make:
            await whole(make(), mode, version)
        print(f"HTTP, {version}: ok")
    async with over_http(project("fastmcp-agents")) as make:
        await many(make)
    print(f"{AGENTS} agents on one server: ok")
    directory = project("fastmcp-servers")
    await many(lambda: stdio(directory))
    print(f"{AGENTS} agents, each with a server of its own: ok")


asyncio.run(main())
