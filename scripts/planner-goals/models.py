"""Servers of models on loopback: one replays recorded answers, the other passes requests on and keeps the answers."""

import http.server
import json
import ssl
import threading
import urllib.error
import urllib.parse
import urllib.request


class Server:
    """A server that runs while it is open."""

    def __enter__(self):
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.requests += 1
                status, answer = outer.answer(self.path, self.headers, body)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.requests = 0
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.http.server_port}"


class Replay(Server):
    """Gives one recorded answer after the other, in the format of chat completions, and the last one again."""

    def __init__(self, answers):
        self.answers = answers

    def answer(self, _path, _headers, body):
        text = self.answers[min(self.requests, len(self.answers)) - 1]
        message = {"role": "assistant", "content": text}
        # An estimate, as no model counted.
        usage = {"prompt_tokens": len(body) // 4, "completion_tokens": len(text) // 4}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return 200, json.dumps({"choices": [choice], "usage": usage}).encode()

    def settings(self):
        return {"url": f"{self.address}/v1", "model": "recorded", "format": "openai"}


class PassOn(Server):
    """Passes the requests to a model on, and keeps the text of its answers."""

    def __init__(self, settings):
        self.planner, self.answers = settings, []
        self.target = urllib.parse.urlsplit(settings["url"])
        # `taskpawl` sends the key to this machine without encryption, and refuses that for others.
        if self.target.scheme != "https" and self.target.hostname not in ("localhost", "127.0.0.1", "::1"):
            raise SystemExit(f"eval-planner: {settings['url']} would get the key without encryption")
        self.context = ssl.create_default_context(cafile=settings.get("ca"))

    def answer(self, path, headers, body):
        kept = ["content-type", "authorization", "x-api-key", "anthropic-version", "user-agent"]
        kept = {name: headers[name] for name in kept if headers[name]}
        request = urllib.request.Request(f"{self.target.scheme}://{self.target.netloc}{path}", body, kept)
        try:
            with urllib.request.urlopen(request, timeout=600, context=self.context) as response:
                status, answer = response.status, response.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()
        except OSError as error:
            return 502, json.dumps({"error": {"message": str(error)}}).encode()
        self.answers.append(text_of(answer))
        return status, answer

    def settings(self):
        settings = {name: value for name, value in self.planner.items() if name != "ca"}
        return settings | {"url": self.address + self.target.path}


def text_of(answer):
    """Returns the text of an answer in either format, as the planner reads it; an empty one if there is none."""
    try:
        answer = json.loads(answer)
        if "choices" in answer:
            return answer["choices"][0]["message"]["content"] or ""
        for block in answer["content"]:
            if block["type"] == "tool_use":
                return json.dumps(block["input"], indent=1)
        return "".join(block.get("text", "") for block in answer["content"])
    except (ValueError, LookupError, TypeError):
        return ""
