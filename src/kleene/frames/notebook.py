"""How results show themselves in a notebook: how many rows there are, and the first of them as a table.

Values come from the user's data, so all of them are escaped, and long ones are cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import islice
from typing import Any

import pyarrow as pa

from kleene.frames.kinds import FrameKind, kind_of

SHOWN = 5
_LISTED = 3
_WIDEST = 80


class Rows(list[dict[str, Any]]):
    """A result as a list of dicts: a list in every respect, which a notebook shows as a table."""

    def _repr_html_(self) -> str:
        return table_html("rows", self)


def table_html(title: str, result: Any) -> str:
    """A result under its title: its size and its first rows; of a data frame on Spark, its columns only."""
    size = size_of(result)
    if size is None:
        names = ", ".join(map(escape, result.columns))
        return f"<p><b>{escape(title)}</b>: a data frame on Spark, with the columns {names}</p>"
    rows = _first(result)
    if not rows:
        return f"<p><b>{escape(title)}</b>: {size:,}</p>"
    columns = list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f"<th>{escape(str(name))}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(row.get(name))}</td>' for name in columns)}</tr>" for row in rows)
    more = f", of which these are the first {len(rows)}" if size > len(rows) else ""
    caption = f"<p><b>{escape(title)}</b>: {size:,}{more}</p>"
    return f"{caption}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def size_of(result: Any) -> int | None:
    """How many rows a result has; None where only a run on Spark would tell."""
    kind = kind_of(result)
    if kind is FrameKind.SPARK:
        return None
    return int(result.num_rows) if kind is FrameKind.ARROW else len(result)


def _first(result: Any) -> Sequence[Mapping[str, Any]]:
    kind = kind_of(result)
    if kind is FrameKind.ROWS:
        return list(islice(result, SHOWN))
    if kind is FrameKind.PANDAS:
        return result.head(SHOWN).to_dict("records")  # type: ignore[no-any-return]
    table = result if kind is FrameKind.ARROW else result.head(SHOWN).to_arrow()
    rows: list[dict[str, Any]] = pa.table(table).slice(0, SHOWN).to_pylist()
    return rows


def _cell(value: Any) -> str:
    text = _text(value)
    return escape(text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…")


def _text(value: Any) -> str:
    """An event as `ts=1, x=5`; of a list of events, the first few."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={_text(part)}" for name, part in value.items())
    if isinstance(value, list | tuple):
        shown = " | ".join(map(_text, value[:_LISTED]))
        return f"[{shown}{' | …' if len(value) > _LISTED else ''}]"
    return "NULL" if value is None else str(value)
