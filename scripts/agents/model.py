"""A stand-in for the model of `claude-code-acp` and `codex-acp`, on a port of this machine: it plays what the prompt says.

`RUN <command>` in the prompt is a use of the shell, whose result ends the turn. A prompt with a JSON Schema gets a first answer that does
not fit, and the right one after that. `WAIT` gets no answer for a minute, until the agent says that it was interrupted. Anything else gets `done`.
"""

import json
import re
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def texts(value):
    """Returns all texts in a message."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for item in value for text in texts(item)]
    if isinstance(value, dict):
        return [text for field in ("text", "content", "output") for text in texts(value.get(field, []))]
    return []


def decide(prompt, was_used):
    """Returns the text of the answer, or the command to run."""
    if was_used:
        return "the command has run", None
    command = re.search(r"^RUN (.+)$", prompt, re.M)
    if command:
        return None, command.group(1)
    if "You were interrupted" in prompt:
        return "gone on", None
    if re.search(r"^WAIT$", prompt, re.M):
        time.sleep(60)
    if "does not fit" in prompt:
        return '{"n": 3}', None
    if "JSON Schema" in prompt:
        return "three", None
    return "done", None


def anthropic(body):
    last = body["messages"][-1]
    was_used = isinstance(last["content"], list) and any(part.get("type") == "tool_result" for part in last["content"])
    text, command = decide("\n".join(texts(last["content"])), was_used)
    has_shell = any(tool.get("name") == "Bash" for tool in body.get("tools", []))
    if command and has_shell:
        start = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}
        given = json.dumps({"command": command, "description": "Runs the command"})
        delta, stop = {"type": "input_json_delta", "partial_json": given}, "tool_use"
    else:
        start, delta, stop = {"type": "text", "text": ""}, {"type": "text_delta", "text": text or "done"}, "end_turn"
    usage = {"input_tokens": 10, "output_tokens": 5}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": [], "stop_reason": None, "usage": usage}
    yield {"type": "message_start", "message": message}
    yield {"type": "content_block_start", "index": 0, "content_block": start}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage}
    yield {"type": "message_stop"}


def responses(body):
    items = body["input"]
    was_used = items[-1].get("type", "").endswith("_output")
    said = [item for item in items if item.get("role") == "user"]
    text, command = decide("\n".join(texts(said[-1])) if said else "", was_used)
    shell = next((tool for tool in body.get("tools", []) if tool.get("name") in ("exec_command", "shell", "shell_command")), None)
    if command and shell:
        escalated = {"cmd": command, "sandbox_permissions": "require_escalated", "justification": "May it run?"}
        given = escalated if shell["name"] == "exec_command" else {"command": command}
        if shell["name"] == "shell":
            given = {"command": ["sh", "-c", command]}
        item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": shell["name"], "arguments": json.dumps(given)}
    else:
        content = [{"type": "output_text", "text": text or "done", "annotations": []}]
        item = {"type": "message", "id": "msg_1", "role": "assistant", "content": content}
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    yield {"type": "response.created", "response": {"id": "resp_1"}}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": {"id": "resp_1", "output": [item], "usage": usage}}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or "{}")
        path = self.path.split("?")[0]
        if path.endswith("/count_tokens"):
            return self.reply(json.dumps({"input_tokens": 10}), "application/json")
        if path.endswith("/messages"):
            events = list(anthropic(body))
        elif path.endswith("/responses"):
            events = list(responses(body))
        else:
            return self.reply("{}", "application/json")
        if not body.get("stream"):
            message = {**events[0]["message"], "content": [{"type": "text", "text": "done"}], "stop_reason": "end_turn"}
            return self.reply(json.dumps(message), "application/json")
        self.reply("".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events), "text/event-stream")

    def do_GET(self):
        self.reply('{"data": []}', "application/json")

    def reply(self, text, kind):
        data = text.encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(sys.argv[1], "w") as file:
    file.write(str(server.server_port))
server.serve_forever()
