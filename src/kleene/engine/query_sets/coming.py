"""Queries on their way into a set: those that wait to be put in together, and those that were refused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from kleene.engine.query_sets.shared_queries import SharedTemplate
from kleene.errors import KleeneError
from kleene.lang.literals import Plain


class PendingQueries:
    """Queries that came one by one and are not yet in the arrays, by template and by the moment when they came."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._rows: dict[tuple[SharedTemplate, int], tuple[list[str], list[Sequence[Plain]]]] = {}

    def __len__(self) -> int:
        return len(self.names)

    def add(self, name: str, template: SharedTemplate, constants: Sequence[Plain], since: int) -> None:
        names, rows = self._rows.setdefault((template, since), ([], []))
        names.append(name)
        rows.append(constants)
        self.names.add(name)

    def removed(self, name: str) -> bool:
        """Whether a query was here, and is no longer."""
        if name not in self.names:
            return False
        self.names.discard(name)
        for names, rows in self._rows.values():
            if name in names:
                del rows[names.index(name)]
                names.remove(name)
        return True

    def taken(self) -> Iterable[tuple[tuple[SharedTemplate, int], tuple[list[str], list[Sequence[Plain]]]]]:
        """All of them, which wait no longer."""
        rows = self._rows
        self.names, self._rows = set(), {}
        return rows.items()


class Refusals:
    """Rows of a table that did not become queries, and why."""

    def __init__(self) -> None:
        self._problems: list[tuple[int, KleeneError]] = []

    def add(self, row: int, problem: KleeneError) -> None:
        self._problems.append((row, problem))

    def table(self, names: pa.Array) -> pa.Table:
        listed = sorted(self._problems, key=lambda each: each[0])
        return pa.table(
            {
                "row": pa.array([row for row, _ in listed], pa.int64()),
                "name": names.take(pa.array([row for row, _ in listed], pa.int64())),
                "code": pa.array([problem.code for _, problem in listed], pa.string()),
                "error": pa.array([str(problem) for _, problem in listed], pa.string()),
            }
        )
