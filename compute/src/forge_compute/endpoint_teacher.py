"""A teacher behind an OpenAI-compatible endpoint."""

import json
from collections.abc import Sequence
from typing import Any

import openai
from openai.types.chat import ChatCompletion

from .builtin_teacher import count_tokens
from .params import Params
from .teachers import Answer, Brief, Pair, Unusable, Usage

_PAIR_FIELDS = ("instruction", "response", "topic")
_PAIRS_SCHEMA = {
    "type": "object",
    "properties": {
        "pairs": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {name: {"type": "string"} for name in _PAIR_FIELDS},
                "required": list(_PAIR_FIELDS),
                "additionalProperties": False,
            },
        }
    },
    "required": ["pairs"],
    "additionalProperties": False,
}
_VERDICT_SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "number"}},
    "required": ["score"],
    "additionalProperties": False,
}

Messages = list[dict[str, str]]


class EndpointTeacher:
    """Params: concurrency, pairs_per_call, retries, request_timeout_s, temperature, max_tokens.

    The client retries lost connections, 429 and 5xx with increasing delays. After that, it raises
    an error of the `openai` package.
    """

    def __init__(self, base_url: str, model: str, key: str | None, params: Params) -> None:
        self.usage = Usage()
        self.concurrency = params.integer("concurrency", 8, 1, 1_000)
        self.pairs_per_call = params.integer("pairs_per_call", 5, 1, 100)
        self._model = model
        self._takes_schema = True
        # These options are sent only if they are set, because not every model accepts them.
        self._options: dict[str, Any] = {}
        if "temperature" in params:
            self._options["temperature"] = params.number("temperature", 1, 0, 2)
        if "max_tokens" in params:
            self._options["max_tokens"] = params.integer("max_tokens", 1024, 1, 1_000_000)
        self._client = openai.AsyncOpenAI(
            base_url=base_url,
            api_key=key or "none",
            max_retries=params.integer("retries", 5, 0, 20),
            timeout=params.number("request_timeout_s", 120, 0.1, 3_600),
        )

    async def pairs(self, brief: Brief, count: int, avoid: Sequence[str]) -> list[Pair]:
        completion, content = await self._ask_json(_pairs_prompt(brief, count, avoid), "pairs")
        found = content.get("pairs")
        if not isinstance(found, list):
            raise Unusable('the answer has no list "pairs"')
        rows = [row for row in found if _is_pair(row)][:count]
        if not rows:
            raise Unusable("the answer has no pair of an instruction and a response")
        prompt, written = self._tokens_of(completion)
        shares = zip(_shares(prompt, len(rows)), _shares(written, len(rows)), strict=True)
        return [
            Pair(
                row["instruction"].strip(),
                row["response"].strip(),
                str(row["topic"]) if row.get("topic") else None,
                completion.model,
                *share,
            )
            for row, share in zip(rows, shares, strict=True)
        ]

    async def answer(self, instruction: str) -> Answer | None:
        completion = await self._ask([{"role": "user", "content": instruction}])
        return Answer(_text_of(completion), completion.model, *self._tokens_of(completion))

    async def judge(self, instruction: str, response: str) -> float | None:
        _, content = await self._ask_json(_verdict_prompt(instruction, response), "verdict")
        score = content.get("score")
        if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
            raise Unusable('the verdict has no "score" from 0 to 1')
        return float(score)

    async def close(self) -> None:
        await self._client.close()

    async def _ask_json(self, messages: Messages, name: str) -> tuple[ChatCompletion, Any]:
        if self._takes_schema:
            schema = {"name": name, "strict": True, "schema": _SCHEMAS[name]}
            extra = {"response_format": {"type": "json_schema", "json_schema": schema}}
            try:
                completion = await self._ask(messages, extra)
                return completion, _parse(_text_of(completion))
            except (openai.BadRequestError, openai.UnprocessableEntityError):
                pass  # response_format is unsupported, or the request is bad even without it
        completion = await self._ask(messages)
        if self._takes_schema:
            print(f"{self._model} does not support response_format; parsing its answers as text")
            self._takes_schema = False
        return completion, _parse(_text_of(completion))

    async def _ask(self, messages: Messages, extra: dict[str, Any] | None = None) -> ChatCompletion:
        options = {**self._options, **(extra or {})}
        try:
            completion: object = await self._client.chat.completions.create(
                model=self._model,
                messages=messages,  # type: ignore[arg-type]  # the library has a type per role
                **options,
            )
        except ValueError as error:  # a body that is not JSON
            raise Unusable(f"the answer is not a completion: {error}") from error
        if not isinstance(completion, ChatCompletion) or not completion.choices:
            raise Unusable("the answer is not a completion")
        prompt, written = self._tokens_of(completion)
        self.usage.prompt_tokens += prompt
        self.usage.completion_tokens += written
        self.usage.is_estimated |= completion.usage is None
        return completion

    def _tokens_of(self, completion: ChatCompletion) -> tuple[int, int]:
        """Returns the tokens of the prompt and of the answer.

        If the endpoint sends no usage data: 0 for the prompt, and an estimate for the answer.
        """
        if completion.usage is None:
            return 0, count_tokens(completion.choices[0].message.content or "")
        return completion.usage.prompt_tokens, completion.usage.completion_tokens


_SCHEMAS = {"pairs": _PAIRS_SCHEMA, "verdict": _VERDICT_SCHEMA}


def _pairs_prompt(brief: Brief, count: int, avoid: Sequence[str]) -> Messages:
    lines = [
        f"Write {count} training examples for a language model.",
        f"Task: {brief.task}",
        *([f"Domain: {brief.domain}"] if brief.domain else []),
        *([f"Style of the responses: {brief.style}"] if brief.style else []),
        "Each has an instruction as a user would write it, a correct and complete response, "
        "and its topic in one or two words. All instructions differ in substance.",
        'Answer with JSON alone: {"pairs": [{"instruction": …, "response": …, "topic": …}]}',
    ]
    if avoid:
        lines.append("These instructions exist already, so write others:")
        lines.extend(f"- {instruction[:200]}" for instruction in avoid)
    return [{"role": "user", "content": "\n".join(lines)}]


def _verdict_prompt(instruction: str, response: str) -> Messages:
    content = (
        "Judge how correct and helpful a response to an instruction is, from 0 (useless or wrong) "
        'to 1 (right and complete). Answer with JSON alone: {"score": <number>}\n\n'
        f"<instruction>\n{instruction}\n</instruction>\n<response>\n{response}\n</response>"
    )
    return [{"role": "user", "content": content}]


def _text_of(completion: ChatCompletion) -> str:
    choice = completion.choices[0]
    text = (choice.message.content or "").strip()
    if choice.finish_reason == "length":
        raise Unusable("the answer was cut off at the token limit")
    if not text:
        raise Unusable("the answer is empty")
    return text


def _parse(text: str) -> Any:  # noqa: ANN401 - JSON
    """Parses the JSON object in an answer. Ignores code fences and text around it."""
    try:
        content = json.loads(text[text.index("{") : text.rindex("}") + 1])
    except ValueError as error:
        raise Unusable("the answer is not JSON") from error
    return content


def _is_pair(row: object) -> bool:
    return isinstance(row, dict) and all(
        isinstance(row.get(name), str) and row[name].strip() for name in ("instruction", "response")
    )


def _shares(total: int, parts: int) -> list[int]:
    """Splits the total into integers that are as even as possible."""
    share, rest = divmod(total, parts)
    return [share + (part < rest) for part in range(parts)]
