"""What queries give: matches, runs that timed out, rows that were no events, and what was set aside."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, repr=False)
class Outputs(Generic[T]):
    """Everything that a query gives: matches, runs that timed out, and rows that were no events.

    All of them are of the kind that the events were; those of a stream are streams, and each of them that is started
    runs the query for itself (`kleene.live` runs it once for all). `timeouts` is None for a query without TIMEOUTS
    INTO.
    """

    matches: T
    timeouts: Any
    bad_rows: T
    # Matches of events that completed more than the budget allows, where its policy is to emit these compressed. None
    # when there are none; whether there are is known on Spark only when it has run, so there it is an empty frame.
    compressed: Any = None
    # Of a stream: events that came after the watermark had passed them.
    late: Any = None

    def __repr__(self) -> str:
        """`Outputs(matches=3, timeouts=1, bad_rows=0)`: how many rows each has, where that is known without a run."""
        from kleene.frames.notebook import size_of

        sizes = {name: size_of(result) for name, result in self._results()}
        said = [f"{name}={'…' if size is None else size}" for name, size in sizes.items()]
        return f"Outputs({', '.join(said)})"

    def _repr_html_(self) -> str:
        from kleene.frames.notebook import table_html

        return "\n".join(table_html(name.replace("_", " "), result) for name, result in self._results())

    def _results(self) -> list[tuple[str, Any]]:
        """Its parts by name, without those that this query does not have."""
        named = ((entry.name, getattr(self, entry.name)) for entry in fields(self))
        return [(name, result) for name, result in named if result is not None]
