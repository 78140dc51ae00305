"""Parses the body of a completion request, with errors in OpenAI's format."""

import json
from dataclasses import dataclass
from typing import Any

from .language_model import LanguageModel
from .serving import Request

_MIN_TEMPERATURE = 1e-3
"""A lower temperature counts as 0: sampling would pick the most likely token anyway, and a division
by the temperature could overflow."""


class BadRequest(Exception):
    def __init__(
        self, message: str, param: str | None = None, status: int = 400, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.param = param
        self.status = status
        self.code = code


@dataclass(frozen=True)
class CompletionRequest:
    request: Request
    is_chat: bool
    is_streamed: bool
    sends_usage: bool
    """Whether a stream ends with a separate event that has the usage."""


def read_request(body: bytes, is_chat: bool, name: str, model: LanguageModel) -> CompletionRequest:
    """Parses and validates the body. Raises BadRequest. Ignores unknown fields."""
    content = _parse(body)
    # The model's name is optional, because the server has only one model.
    if content.get("model", name) != name:
        message = f"unknown model {content['model']!r}; this server has only {name!r}"
        raise BadRequest(message, "model", 404, "model_not_found")
    _refuse_unsupported(content)
    messages = _messages(content) if is_chat else _prompt(content)
    prompt = model.prompt(messages)
    room = model.context - len(prompt)
    if room < 1:
        message = f"the prompt has {len(prompt)} tokens, but the limit is {model.context - 1}"
        raise BadRequest(
            message, "messages" if is_chat else "prompt", 400, "context_length_exceeded"
        )
    limit_name = "max_completion_tokens" if "max_completion_tokens" in content else "max_tokens"
    limit = _integer(content, limit_name, minimum=1)
    temperature = content.get("temperature")
    if temperature is None:
        temperature = 0
    if isinstance(temperature, bool) or not isinstance(temperature, int | float):
        raise BadRequest("temperature must be a number", "temperature")
    if not 0 <= temperature <= 2:
        raise BadRequest("temperature must be from 0 to 2", "temperature")
    options = content.get("stream_options")
    return CompletionRequest(
        Request(
            prompt,
            room if limit is None else min(limit, room),
            float(temperature) if temperature >= _MIN_TEMPERATURE else 0.0,
            _stop(content),
            _integer(content, "seed", minimum=0),
        ),
        is_chat,
        content.get("stream") is True,
        isinstance(options, dict) and options.get("include_usage") is True,
    )


def _parse(body: bytes) -> dict[str, Any]:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"the body is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise BadRequest("the body is not a JSON object")
    return content


def _refuse_unsupported(content: dict[str, Any]) -> None:
    if content.get("n") not in (None, 1):
        raise BadRequest("only one choice is supported: n must be 1", "n")
    form = content.get("response_format")
    if form is not None and form != {"type": "text"}:
        raise BadRequest("this model supports plain text only", "response_format")
    if content.get("tools"):
        raise BadRequest("this model does not support tools", "tools")


def _messages(content: dict[str, Any]) -> list[dict[str, str]]:
    messages = content.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest("messages must be a list with at least one message", "messages")
    return [_message(message, f"messages[{index}]") for index, message in enumerate(messages)]


def _message(message: object, param: str) -> dict[str, str]:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise BadRequest(f"{param} must have a role and a content", param)
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text") if isinstance(part, dict) else None for part in content]
        if all(isinstance(part, str) for part in parts):
            content = "".join(str(part) for part in parts)
    if not isinstance(content, str):
        raise BadRequest(f"{param}.content must be text", f"{param}.content")
    return {"role": message["role"], "content": _valid_text(content, param)}


def _prompt(content: dict[str, Any]) -> list[dict[str, str]]:
    prompt = content.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if not isinstance(prompt, str):
        raise BadRequest("prompt must be a string, or a list with one string", "prompt")
    return [{"role": "user", "content": _valid_text(prompt, "prompt")}]


def _stop(content: dict[str, Any]) -> list[str]:
    stop = content.get("stop")
    stops = [] if stop is None else [stop] if isinstance(stop, str) else stop
    is_valid = isinstance(stops, list) and all(isinstance(text, str) and text for text in stops)
    if not is_valid or len(stops) > 4:
        raise BadRequest("stop must be a string, or a list of at most four strings", "stop")
    return list(stops)


def _integer(content: dict[str, Any], name: str, minimum: int) -> int | None:
    value = content.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value < 2**63:
        raise BadRequest(f"{name} must be an integer of at least {minimum}", name)
    return value


def _valid_text(text: str, param: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:  # an unpaired surrogate
        raise BadRequest(f"{param} is not valid Unicode", param) from error
    return text
