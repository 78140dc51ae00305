"""Reading the body of a completion request; what is wrong with it, in OpenAI's terms."""

import json
from dataclasses import dataclass
from typing import Any

from .language_model import LanguageModel
from .serving import Request

_LEAST_TEMPERATURE = 1e-3
"""Below it the likeliest token is as good as certain, and a division by it overflows."""


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
    """With a stream, as a last event of its own."""


def read_request(body: bytes, is_chat: bool, name: str, model: LanguageModel) -> CompletionRequest:
    """Raises BadRequest. Fields that are not named here have no effect."""
    content = _parse(body)
    # There is one model: who names none means it.
    if content.get("model", name) != name:
        message = f"there is no model {content['model']!r} here, only {name!r}"
        raise BadRequest(message, "model", 404, "model_not_found")
    _refuse_unsupported(content)
    messages = _messages(content) if is_chat else _prompt(content)
    prompt = model.prompt(messages)
    room = model.context - len(prompt)
    if room < 1:
        message = f"the prompt has {len(prompt)} tokens, and the model reads {model.context - 1}"
        raise BadRequest(
            message, "messages" if is_chat else "prompt", 400, "context_length_exceeded"
        )
    limit_name = "max_completion_tokens" if "max_completion_tokens" in content else "max_tokens"
    limit = _integer(content, limit_name, least=1)
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
            float(temperature) if temperature >= _LEAST_TEMPERATURE else 0.0,
            _stop(content),
            _integer(content, "seed", least=0),
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
        raise BadRequest("one choice is all there is: n must be 1", "n")
    form = content.get("response_format")
    if form is not None and form != {"type": "text"}:
        raise BadRequest("this model writes plain text only", "response_format")
    if content.get("tools"):
        raise BadRequest("this model calls no tools", "tools")


def _messages(content: dict[str, Any]) -> list[dict[str, str]]:
    messages = content.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest("messages must be a list with at least one message", "messages")
    return [_message(message, f"messages[{place}]") for place, message in enumerate(messages)]


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
    return {"role": message["role"], "content": _sound(content, param)}


def _prompt(content: dict[str, Any]) -> list[dict[str, str]]:
    prompt = content.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if not isinstance(prompt, str):
        raise BadRequest("prompt must be one text", "prompt")
    return [{"role": "user", "content": _sound(prompt, "prompt")}]


def _stop(content: dict[str, Any]) -> list[str]:
    stop = content.get("stop")
    stops = [] if stop is None else [stop] if isinstance(stop, str) else stop
    sound = isinstance(stops, list) and all(isinstance(text, str) and text for text in stops)
    if not sound or len(stops) > 4:
        raise BadRequest("stop must be a text or a list of at most four", "stop")
    return list(stops)


def _integer(content: dict[str, Any], name: str, least: int) -> int | None:
    value = content.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**63:
        raise BadRequest(f"{name} must be an integer from {least}", name)
    return value


def _sound(text: str, param: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:  # half a surrogate pair
        raise BadRequest(f"{param} is not valid Unicode", param) from error
    return text
