"""Compare what an executor found with what a case expects, in the case's own words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kleene.errors import KleeneError
from kleene.testing.cases import Case


@dataclass(frozen=True)
class Observed:
    """What an executor found: one mapping a match, from variable to row number, tuple of them, or None.

    With RETURN, a mapping from column to value, an event being `Row(number)`; with COMPRESSED, the completing row and
    the count; of a query of streams, a mapping from attribute to value, as `stream_values` makes it.
    """

    matches: Sequence[Mapping[str, Any]] = ()
    returned: Sequence[Mapping[str, Any]] | None = None
    compressed: Sequence[tuple[int, int]] | None = None
    # With when the window closed, as `closed`.
    timeouts: Sequence[Mapping[str, Any]] = ()
    warnings: frozenset[str] = frozenset()
    stream: Sequence[Mapping[str, Any]] | None = None


@dataclass(frozen=True, slots=True)
class RowNumber:
    """An event in a returned row."""

    number: int


Executor = Callable[[Case], Observed]


def stream_values(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a stream's result in the words of a case: `S1.price` of the struct `S1`, other columns by their names.

    The id is left out: it is a hash of the rest.
    """
    values: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            values |= {f"{name}.{attribute}": each for attribute, each in value.items()}
        elif name not in ("match_id", "query"):
            values[name] = value
    return values


def check_case(case: Case, executor: Executor) -> None:
    """Raise AssertionError, with the case's reason, when the executor disagrees with the case."""
    try:
        observed = executor(case)
    except KleeneError as error:
        _check_error(case, error)
        return
    if case.error is not None:
        raise AssertionError(f"{_title(case)}: expected {case.error.code}, got {len(observed.matches)} matches")
    assert case.expected is not None
    actual, wanted = Counter(_described(case, observed)), Counter(case.expected)
    if actual != wanted:
        raise AssertionError(
            f"{_title(case)}\nwhy: {case.why}\nmissing: {_show((wanted - actual).elements())}\n"
            f"unexpected: {_show((actual - wanted).elements())}"
        )
    if not case.warnings <= observed.warnings:
        raise AssertionError(f"{_title(case)}: expected warnings {case.warnings}, got {observed.warnings}")
    if case.timeouts is not None:
        late = frozenset(_labelled_timeout(case, row) for row in observed.timeouts)
        if late != case.timeouts:
            raise AssertionError(f"{_title(case)}: timeouts {_show(late)}, expected {_show(case.timeouts)}")


def _title(case: Case) -> str:
    return f"{case.place} {case.name}"


def _show(rows: Iterable[tuple[Any, ...]]) -> str:
    return "; ".join(" ".join(f"{name}={value}" for name, value in row) for row in sorted(rows, key=repr)) or "nothing"


def _check_error(case: Case, error: KleeneError) -> None:
    expected = case.error
    if expected is None or expected.code != error.code:
        wanted = "no error" if expected is None else expected.code
        raise AssertionError(f"{_title(case)}: expected {wanted}, got\n{error}") from error
    if expected.line is not None and (expected.line, expected.column) != (error.line, error.column):
        raise AssertionError(f"{_title(case)}: expected at {expected.line}:{expected.column}, got\n{error}") from error
    if expected.hint is not None and expected.hint not in (error.hint or ""):
        raise AssertionError(f"{_title(case)}: expected the hint {expected.hint!r}, got\n{error}") from error


def _described(case: Case, observed: Observed) -> list[tuple[Any, ...]]:
    labels = case.all_labels
    if observed.stream is not None:
        return [tuple(sorted(row.items())) for row in observed.stream]
    if observed.compressed is not None:
        return [(("count", count), ("end", labels[row])) for row, count in observed.compressed]
    if observed.returned is not None:
        return [_labelled_values(labels, row) for row in observed.returned]
    return [_labelled(case, row) for row in observed.matches]


def _labelled(case: Case, row: Mapping[str, Any], *, drop_absent: bool = False) -> tuple[Any, ...]:
    labels = case.all_labels
    named = {
        name: tuple(_label(labels, r) for r in rows)
        if isinstance(rows, tuple)
        else None
        if rows is None
        else _label(labels, rows)
        for name, rows in row.items()
    }
    return tuple(sorted((name, value) for name, value in named.items() if not (drop_absent and value in (None, ()))))


def _labelled_timeout(case: Case, row: Mapping[str, Any]) -> tuple[Any, ...]:
    """A prefix, and when its window closed where the case says so."""
    shows_closed = any(name == "closed" for expected in case.timeouts or () for name, _ in expected)
    prefix = _labelled(case, {name: rows for name, rows in row.items() if name != "closed"}, drop_absent=True)
    return tuple(sorted((*prefix, ("closed", row["closed"])))) if shows_closed else prefix


def _label(labels: list[str], row: int) -> str:
    """Rows past the input are composite events: they are called by their number."""
    return labels[row] if row < len(labels) else f"made{row - len(labels) + 1}"


def _labelled_values(labels: list[str], row: Mapping[str, Any]) -> tuple[Any, ...]:
    def shown(value: Any) -> Any:
        if isinstance(value, RowNumber):
            return _label(labels, value.number)
        return tuple(map(shown, value)) if isinstance(value, tuple) else value

    return tuple(sorted((name, shown(value)) for name, value in row.items()))
