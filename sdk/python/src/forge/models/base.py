"""The base of all models: accepts unknown fields, and has a short repr."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from enum import Enum
from html import escape
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """A response of the API.

    Unknown fields of a newer server are kept as attributes. Fields that an older server leaves out
    have a default. Enumerated values, such as a worker's status, are plain strings, because new
    values may be added.
    """

    model_config = ConfigDict(extra="allow", frozen=True, protected_namespaces=())

    shown: ClassVar[tuple[str, ...]] = ()
    """The fields in the repr. Empty: all fields."""

    def to_dict(self) -> dict[str, Any]:
        """The response as JSON values."""
        return self.model_dump(mode="json", by_alias=True)

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        for name, value in self._shown_fields():
            yield name, _Plain(_short(value)) if isinstance(value, (datetime, Enum)) else value

    __str__ = BaseModel.__repr__

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th style="text-align:left">{escape(name)}</th>'
            f'<td style="text-align:left">{escape(_short(value))}</td></tr>'
            for name, value in self._shown_fields()
        )
        return f"<table><caption>{escape(type(self).__name__)}</caption>{rows}</table>"

    def shown_texts(self) -> dict[str, str]:
        """Maps the name of each field in the repr to the field's value as text."""
        return {name: _short(value) for name, value in self._shown_fields()}

    def _shown_fields(self) -> Iterator[tuple[str, Any]]:
        fields = type(self).model_fields
        for name in self.shown or fields:
            value = getattr(self, name, None)
            is_secret = name in fields and not fields[name].repr
            if not is_secret and value not in (None, (), [], {}):
                yield name, value


def html_table(title: str, models: Sequence[Model], note: str = "") -> str:
    """An HTML table for notebooks, with one row per model."""
    rows = [model.shown_texts() for model in models]
    names = list(dict.fromkeys(name for row in rows for name in row))
    cell = '<td style="text-align:left">'
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(
        f"<tr>{''.join(f'{cell}{escape(row.get(name, str()))}</td>' for name in names)}</tr>"
        for row in rows
    )
    caption = f"<caption>{escape(title)}</caption>"
    return f"<table>{caption}<tr>{head}</tr>{body}</table>{escape(note)}"


class _Plain(str):
    """A string whose repr has no quotes."""

    def __repr__(self) -> str:
        return str(self)


def _short(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds")
    if isinstance(value, Enum):
        return str(value.value)
    text = str(value)
    return text if len(text) <= 200 else f"{text[:200]} …"
