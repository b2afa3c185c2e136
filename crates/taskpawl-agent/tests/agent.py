"""An agent for tests: speaks the Agent Client Protocol, and does what its scenario says.

The scenario is the JSON in the file that the first argument names: {"turns": [[action, …], …], …}. The number of prompts in the session
chooses the turn; the last turn is for all that follow. Sessions are kept in `sessions.json` of the working directory.
"""

import json
import os
import subprocess
import sys
import time

SCENARIO = json.load(open(sys.argv[1]))
STORE = "sessions.json"
SERVERS = []
next_id = 0


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def receive():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def ask(method, params):
    """Sends a request to the client, and returns its answer."""
    global next_id
    next_id += 1
    mine = f"a{next_id}"
    send({"id": mine, "method": method, "params": params})
    while True:
        message = receive()
        if message.get("id") == mine:
            return message
        if message.get("method") == "session/cancel":
            sys.exit(0)


def sessions():
    try:
        return json.load(open(STORE))
    except OSError:
        return {}


def keep(all_sessions):
    with open(STORE, "w") as file:
        json.dump(all_sessions, file)


def update(session, name, **fields):
    send({"method": "session/update", "params": {"sessionId": session, "update": {"sessionUpdate": name, **fields}}})


def say(session, text):
    update(session, "agent_message_chunk", content={"type": "text", "text": text})


def talk(calls):
    """Starts the first MCP server of the session as agents do, without further descriptors, and calls its tools."""
    server = SERVERS[0]
    own = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    env = {**own, **{variable["name"]: variable["value"] for variable in server["env"]}}
    started = subprocess.Popen([server["command"], *server["args"]], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def call(number, method, params):
        started.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
        started.stdin.flush()
        while True:
            message = json.loads(started.stdout.readline())
            if message.get("id") == number:
                return message.get("result", message.get("error"))

    call(0, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
    started.stdin.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}) + "\n")
    answers = [call(number + 1, "tools/call", params) for number, params in enumerate(calls)]
    started.stdin.close()
    started.wait()
    return answers


def act(session, action, prompts):
    """Does one action. Returns the end of the turn if it ends it."""
    kind, value = next(iter(action.items()))
    if kind == "say":
        say(session, value)
    elif kind == "prompts":
        say(session, json.dumps(prompts))
    elif kind == "environment":
        say(session, os.environ.get(value, "unset"))
    elif kind == "tool":
        update(session, "tool_call", **value)
        update(session, "tool_call_update", toolCallId=value["toolCallId"], status="completed")
    elif kind == "plan":
        update(session, "plan", entries=value)
    elif kind == "cost":
        update(session, "usage_update", used=1, size=2, cost={"amount": value, "currency": "USD"})
    elif kind == "permission":
        options = [{"optionId": "y", "name": "Yes", "kind": "allow_once"}, {"optionId": "n", "name": "No", "kind": "reject_once"}]
        answer = ask("session/request_permission", {"sessionId": session, "toolCall": value, "options": options})
        say(session, "granted" if answer["result"]["outcome"].get("optionId") == "y" else "refused")
    elif kind in ("fs/read_text_file", "fs/write_text_file", "terminal/create"):
        answer = ask(kind, {"sessionId": session, **value})
        say(session, json.dumps(answer.get("result", answer.get("error"))))
    elif kind == "mcp":
        say(session, json.dumps(talk(value)))
    elif kind == "spawn":
        os.spawnlp(os.P_NOWAIT, "sleep", "sleep", str(value))
    elif kind == "make":
        open(value, "w").close()
    elif kind == "crash_unless":
        if not os.path.exists(value):
            open(value, "w").close()
            os.kill(os.getpid(), 9)
    elif kind == "stderr":
        print(value, file=sys.stderr, flush=True)
    elif kind == "raw":
        sys.stdout.write(value + "\n")
        sys.stdout.flush()
    elif kind == "flood":
        for _ in range(value):
            say(session, "x" * 65536)
    elif kind == "exit":
        sys.exit(value)
    elif kind == "hang":
        time.sleep(600)
    elif kind == "stop":
        return {"result": {"stopReason": value}}
    elif kind == "tokens":
        return {"result": {"stopReason": "end_turn", "usage": value}}
    elif kind == "error":
        return {"error": value}
    return None


def prompt(session, blocks):
    known = sessions()
    prompts = known.setdefault(session, [])
    prompts.append([block.get("text") or block.get("uri") for block in blocks])
    keep(known)
    turns = SCENARIO.get("turns", [[{"say": "done"}]])
    for action in turns[min(len(prompts), len(turns)) - 1]:
        end = act(session, action, prompts)
        if end:
            return end
    return {"result": {"stopReason": "end_turn"}}


def answer(method, params):
    SERVERS.extend(params.get("mcpServers", []))
    if method in SCENARIO.get("answers", {}):
        return SCENARIO["answers"][method]
    if method == "initialize":
        capabilities = {"loadSession": SCENARIO.get("loadSession", True)}
        if SCENARIO.get("fork"):
            capabilities["sessionCapabilities"] = {"fork": {}}
        result = {"protocolVersion": 1, "agentCapabilities": capabilities, "agentInfo": {"name": "scripted", "version": "1"}}
        return {"result": result}
    if method == "session/new":
        known = sessions()
        session = f"s{len(known) + 1}"
        known[session] = []
        keep(known)
        modes = {"currentModeId": "code", "availableModes": [{"id": "code", "name": "Code"}, {"id": "plan", "name": "Plan"}]}
        return {"result": {"sessionId": session, "modes": modes}}
    if method == "session/fork":
        known = sessions()
        session = f"s{len(known) + 1}"
        known[session] = list(known[params["sessionId"]])
        keep(known)
        return {"result": {"sessionId": session}}
    if method == "session/load":
        if params["sessionId"] not in sessions():
            return {"error": {"code": -32603, "message": "no such session"}}
        # The messages so far are repeated, as the protocol asks for.
        say(params["sessionId"], "an old message")
        return {"result": {}}
    if method == "session/prompt":
        return prompt(params["sessionId"], params["prompt"])
    if method in ("session/set_mode", "authenticate"):
        return {"result": {}}
    return {"error": {"code": -32601, "message": "unknown method"}}


if SCENARIO.get("greeting"):
    print(SCENARIO["greeting"], flush=True)
while True:
    message = receive()
    if "id" in message and "method" in message:
        send({"id": message["id"], **answer(message["method"], message.get("params", {}))})
