"""The types of columns that a pipeline file can name: a fixed list, so that their text is parsed as nothing else."""

from __future__ import annotations

import re

_PLAIN = frozenset(
    {"string", "boolean", "byte", "tinyint", "short", "smallint", "int", "integer", "long", "bigint"}
    | {"float", "double", "binary", "date", "timestamp", "timestamp_ntz"}
)
_DECIMAL = re.compile(r"decimal\(\s*(\d{1,2})\s*,\s*(\d{1,2})\s*\)\Z")


def is_column_type(name: str) -> bool:
    word = name.casefold().strip()
    decimal = _DECIMAL.match(word)
    if decimal is not None:
        return 1 <= int(decimal[1]) <= 38 and int(decimal[2]) <= int(decimal[1])
    return word in _PLAIN
