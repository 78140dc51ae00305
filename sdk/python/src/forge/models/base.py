"""What all models are: they take what they don't know, and show what matters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from enum import Enum
from html import escape
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """What the API answered.

    Fields of a later Forge are kept, as attributes too; those that an earlier one leaves out have
    a default. Texts from a fixed set, e.g. a worker's status, are plain texts: the set may grow.
    """

    model_config = ConfigDict(extra="allow", frozen=True, protected_namespaces=())

    shown: ClassVar[tuple[str, ...]] = ()
    """The fields that a repr has; empty: all."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
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
        """What a person wants to see of it, by field."""
        return {name: _short(value) for name, value in self._shown_fields()}

    def _shown_fields(self) -> Iterator[tuple[str, Any]]:
        fields = type(self).model_fields
        for name in self.shown or fields:
            value = getattr(self, name, None)
            is_secret = name in fields and not fields[name].repr
            if not is_secret and value not in (None, (), [], {}):
                yield name, value


def html_table(title: str, models: Sequence[Model], note: str = "") -> str:
    """Models of one kind as a table for notebooks, a row each."""
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
    """Shown without quotes."""

    def __repr__(self) -> str:
        return str(self)


def _short(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds")
    if isinstance(value, Enum):
        return str(value.value)
    text = str(value)
    return text if len(text) <= 200 else f"{text[:200]} …"
