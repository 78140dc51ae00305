"""The API's OpenAPI document: its operations, and sample responses."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

Json = dict[str, Any]

_PLACES = {
    "string": "text",
    "integer": 1,
    "number": 0.5,
    "boolean": True,
    "null": None,
}


@cache
def document() -> Json:
    path = Path(__file__).parents[3] / "docs" / "openapi.json"
    found: Json = json.loads(path.read_text())
    return found


def operations() -> dict[str, tuple[str, str, Json]]:
    """The operations by id: the method, the path and the entry in the document."""
    return {
        operation["operationId"]: (method.upper(), path, operation)
        for path, methods in document()["paths"].items()
        for method, operation in methods.items()
        if method != "parameters"
    }


_OLDER_PATHS = {"/api/audit": "/api/audit-log"}
"""Paths that the client still uses, to support servers of the previous release, each with the
documented path that replaced it."""


def operation_of(method: str, path: str) -> tuple[str, Json] | None:
    """Finds a request's operation. If several match, takes the one with the fewest parameters."""
    path = _OLDER_PATHS.get(path, path)
    fits = [
        (template.count("{"), name, operation)
        for name, (verb, template, operation) in operations().items()
        if verb == method and re.fullmatch(_pattern(template), path)
    ]
    if not fits:
        return None
    _, name, operation = min(fits, key=lambda fit: fit[0])
    return name, operation


def _pattern(template: str) -> str:
    # The parameter {path} may contain slashes. Other parameters may not.
    parts = re.split(r"(\{[a-z_]+\})", template)
    return "".join(
        (".+" if part == "{path}" else "[^/]+") if part.startswith("{") else re.escape(part)
        for part in parts
    )


def sample(schema: Json, *, full: bool) -> Any:  # noqa: ANN401 - JSON
    """A sample value. Without `full`, it has only required fields, and null where possible."""
    if "$ref" in schema:
        name = schema["$ref"].split("/")[-1]
        return sample(document()["components"]["schemas"][name], full=full)
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        nulls = [each for each in choices if each.get("type") == "null"]
        return sample(nulls[0] if nulls and not full else choices[0], full=full)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = "null" if "null" in kind and not full else kind[0]
    if kind == "object":
        fields = schema.get("properties", {})
        wanted = fields if full else schema.get("required", [])
        others = schema.get("additionalProperties")
        return {name: sample(fields.get(name, others), full=full) for name in wanted}
    if kind == "array":
        return [sample(schema["items"], full=full)] if full else []
    if schema.get("format") == "date-time":
        return "2026-11-01T00:00:00.000Z"
    if kind == "string" and "a-f" in schema.get("pattern", ""):
        return "0" * 64
    return _PLACES.get(str(kind))
