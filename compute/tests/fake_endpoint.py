"""A scripted OpenAI-compatible server, which can also misbehave."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Reply = tuple[int, str] | None
"""Status and body; None cuts the connection."""
Behave = Callable[[dict[str, Any], int], Reply]
"""Arguments: a request's body, and the number of requests before it."""


def completion(content: str, tokens: int = 7, reason: str = "stop", usage: bool = True) -> Reply:
    body: dict[str, Any] = {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": "teacher-1",
        "choices": [
            {
                "index": 0,
                "finish_reason": reason,
                "message": {"role": "assistant", "content": content},
            }
        ],
    }
    if usage:
        body["usage"] = {
            "prompt_tokens": 11,
            "completion_tokens": tokens,
            "total_tokens": tokens + 11,
        }
    return 200, json.dumps(body)


class FakeEndpoint:
    def __init__(self, behave: Behave) -> None:
        self.requests: list[dict[str, Any]] = []
        self.authorizations: set[str] = set()
        self._lock = threading.Lock()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with endpoint._lock:
                    number = len(endpoint.requests)
                    endpoint.requests.append(body)
                endpoint.authorizations.add(self.headers["Authorization"])
                reply = behave(body, number)
                if reply is None:
                    self.connection.close()
                    return
                status, text = reply
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("retry-after-ms", "1")  # keeps the client's delays short
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
