"""A pandas index is no column: where it holds what a query needs, the error says how to make one of it."""

from __future__ import annotations

from typing import Any

from kleene.errors import MissingColumn
from kleene.pattern.schema import Schema


def refuse_index(frame: Any, schema: Schema) -> None:
    """An error where the time, the type or another role stands in the index of a pandas frame and in no column."""
    roles = {"time": schema.time, "start": schema.start, "tie-breaker": schema.tie_breaker}
    if schema.constant_type is None:
        roles["type"] = schema.type
    names = list(frame.index.names)
    for role, column in roles.items():
        if column is None or column in frame.columns:
            continue
        if column in names:
            raise _in_index(role, column, "df.reset_index()")
        if role == "time" and type(frame.index).__name__ == "DatetimeIndex":
            raise _in_index(role, column, f"df.rename_axis('{column}').reset_index()")


def _in_index(role: str, column: str, remedy: str) -> MissingColumn:
    return MissingColumn(
        f"the {role} is in the index of this frame, not in a column `{column}`",
        hint=f"make the index a column: `{remedy}`",
    )
