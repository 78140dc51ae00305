"""An OpenAI-compatible HTTP server for one model."""

import hmac
import json
import socket
import sys
import time
import uuid
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from .completion_request import BadRequest, CompletionRequest, read_request
from .language_model import LanguageModel
from .serving import Busy, Finish, ModelQueue

BODY_LIMIT = 2**20
_IDLE_S = 60.0
_LENGTH_DIGITS = 18
_LAST_RESPONSES_S = 1.0
_LINGER_S = 5.0
_LINGER_BYTES = 32 * 2**20


class ApiServer(ThreadingHTTPServer):
    """Binds to its port at once, so that the port is known. Listens only after `server_activate`.

    If `token` is given, every request except `/health` must send it as its bearer token. Otherwise,
    the response is a 401.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self, host: str, port: int, name: str, model: LanguageModel, token: str | None = None
    ) -> None:
        self.token = token
        self.model_name = name
        self.model = model
        self.queue = ModelQueue(model, on_gpu_failure=self._give_up)
        self.gpu_failure: str | None = None
        self.started = int(time.time())
        super().__init__((host, port), _Connection, bind_and_activate=False)
        self.server_bind()

    def _give_up(self, gpu_failure: str) -> None:
        """Ends `serve_forever` after a GPU failure: only a new process can use the GPU again.

        The process ends when `serve_forever` returns. So this method first waits for
        `_LAST_RESPONSES_S`: in this time, open requests receive an error.
        """
        self.gpu_failure = gpu_failure
        time.sleep(_LAST_RESPONSES_S)
        self.shutdown()

    def handle_error(self, request: object, client_address: object) -> None:
        """Logs one line for a broken connection, instead of socketserver's stack trace."""
        print(f"connection of {client_address}: {sys.exception()!r}")


class _Connection(BaseHTTPRequestHandler):
    server: ApiServer
    protocol_version = "HTTP/1.1"
    server_version = "forge"
    sys_version = ""
    timeout = _IDLE_S
    _has_unread = False

    def handle(self) -> None:
        super().handle()
        if self._has_unread:
            self._linger()

    def _linger(self) -> None:
        """Lingering close: reads for some time before the connection is closed.

        An immediate close would reset the connection. A client that sends its whole request before
        it reads would then get a broken pipe instead of the response.
        """
        deadline = time.monotonic() + _LINGER_S
        remaining = _LINGER_BYTES
        try:
            self.connection.shutdown(socket.SHUT_WR)
            while remaining > 0 and (wait_s := deadline - time.monotonic()) > 0:
                self.connection.settimeout(wait_s)
                piece = self.connection.recv(2**16)
                if not piece:
                    return
                remaining -= len(piece)
        except OSError:  # the client has disconnected or timed out
            return

    def _leave_unread(self) -> None:
        self.close_connection = True
        self._has_unread = True

    def do_GET(self) -> None:
        name = self.server.model_name
        card = {"id": name, "object": "model", "created": self.server.started, "owned_by": "forge"}
        match self.path.split("?")[0]:
            case "/health":
                self._send(200, {"status": "ok", "model": name})
            case _ if not self._is_authorized():
                self._unauthorized()
            case "/v1/models":
                self._send(200, {"object": "list", "data": [card]})
            case path if path == f"/v1/models/{name}":
                self._send(200, card)
            case _:
                self._not_found()

    def do_POST(self) -> None:
        path = self.path.split("?")[0]
        if not self._is_authorized():
            self._unauthorized()
            return
        if path not in ("/v1/chat/completions", "/v1/completions"):
            self._not_found()
            return
        try:
            completion = read_request(
                self._body(),
                path == "/v1/chat/completions",
                self.server.model_name,
                self.server.model,
            )
            self.server.queue.submit(completion.request)
        except BadRequest as error:
            self._refuse(error.status, str(error), error.param, error.code)
            return
        except Busy as error:
            self._refuse(503, str(error), code="overloaded", retry_after="1")
            return
        try:
            (self._stream if completion.is_streamed else self._answer)(
                _ResponseBuilder(self.server, completion)
            )
        except OSError:  # the client has disconnected
            self.close_connection = True
        finally:
            completion.request.abandon()

    def _is_authorized(self) -> bool:
        token = self.server.token
        sent = self.headers.get("Authorization", "")
        return token is None or hmac.compare_digest(sent.encode(), f"Bearer {token}".encode())

    def _unauthorized(self) -> None:
        self._leave_unread()
        self._refuse(401, "the deployment's token is required", code="invalid_token")

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or len(length) > _LENGTH_DIGITS:
            self._leave_unread()
            raise BadRequest("Content-Length is required", status=411)
        if int(length) > BODY_LIMIT:
            self._leave_unread()
            raise BadRequest(f"the body is larger than {BODY_LIMIT} bytes", status=413)
        return self.rfile.read(int(length))

    def _answer(self, builder: "_ResponseBuilder") -> None:
        text = ""
        for piece in builder.completion.request.pieces():
            if isinstance(piece, Finish):
                if piece.reason == "error":
                    self._refuse(500, "the model failed")
                else:
                    self._send(200, builder.whole(text, piece))
            else:
                text += piece

    def _stream(self, builder: "_ResponseBuilder") -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in builder.completion.request.pieces():
            for event in builder.events(piece):
                self._send_event(json.dumps(event))
        self._send_event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def _send_event(self, text: str) -> None:
        data = f"data: {text}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def _send(self, status: int, content: dict[str, Any], retry_after: str | None = None) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if retry_after:
            self.send_header("Retry-After", retry_after)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)

    def _refuse(
        self,
        status: int,
        message: str,
        param: str | None = None,
        code: str | None = None,
        retry_after: str | None = None,
    ) -> None:
        self._send(status, error_body(status, message, param, code), retry_after)

    def _not_found(self) -> None:
        self._leave_unread()  # an unread body must not be parsed as the next request
        self._refuse(404, f"unknown path: {self.command} {self.path}")

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Sends errors of http.server itself in the same format as all others."""
        self._leave_unread()
        self._refuse(code, message or HTTPStatus(code).phrase)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        if self.path != "/health":
            super().log_request(code, size)


class _ResponseBuilder:
    """Builds a response in OpenAI's format."""

    def __init__(self, server: ApiServer, completion: CompletionRequest) -> None:
        self.completion = completion
        self._is_first = True
        kind = "chat.completion" if completion.is_chat else "text_completion"
        self._head = {
            "id": f"{'chatcmpl' if completion.is_chat else 'cmpl'}-{uuid.uuid4().hex}",
            "object": f"{kind}.chunk" if completion.is_chat and completion.is_streamed else kind,
            "created": int(time.time()),
            "model": server.model_name,
        }

    def whole(self, text: str, finish: Finish) -> dict[str, Any]:
        if self.completion.is_chat:
            choice: dict[str, Any] = {"message": {"role": "assistant", "content": text}}
        else:
            choice = {"text": text}
        choice |= {"index": 0, "finish_reason": finish.reason, "logprobs": None}
        return {**self._head, "choices": [choice], "usage": self._usage(finish)}

    def events(self, piece: str | Finish) -> list[dict[str, Any]]:
        """Returns the data of the server-sent events for a piece of the text, or for its end."""
        if isinstance(piece, str):
            return [self._chunk(piece, None)]
        if piece.reason == "error":
            return [error_body(500, "the model failed")]
        events = [self._chunk("", piece.reason)]
        if self.completion.sends_usage:
            events.append({**self._head, "choices": [], "usage": self._usage(piece)})
        return events

    def _chunk(self, text: str, reason: str | None) -> dict[str, Any]:
        choice: dict[str, Any] = {"index": 0, "finish_reason": reason, "logprobs": None}
        if self.completion.is_chat:
            role = {"role": "assistant"} if self._is_first else {}
            choice["delta"] = {**role, **({"content": text} if text else {})}
        else:
            choice["text"] = text
        self._is_first = False
        return {**self._head, "choices": [choice]}

    def _usage(self, finish: Finish) -> dict[str, int]:
        prompt = len(self.completion.request.prompt)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": finish.completion_tokens,
            "total_tokens": prompt + finish.completion_tokens,
        }


def error_body(
    status: int, message: str, param: str | None = None, code: str | None = None
) -> dict[str, Any]:
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}
