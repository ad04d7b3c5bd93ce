"""Whether a result has the columns that its sinks declare: `DECLARE SINK alerts (acc int)` (NEXT §3.5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kleene.errors import UnfitResult, did_you_mean
from kleene.lang import tree
from kleene.pattern.clock import Clock, ClockKind
from kleene.pattern.schema import declared_attributes
from kleene.pattern.types import ValueType, comparable


def columns_of_every_result(clock: Clock) -> dict[str, ValueType]:
    """The columns that every result has, with their types."""
    times = ValueType.ZONED if clock.zoned else ValueType.TIMESTAMP
    time = {ClockKind.TICKS: ValueType.INT, ClockKind.TIMESTAMP: times}.get(clock.kind, ValueType.UNKNOWN)
    return {"match_id": ValueType.STRING, "query": ValueType.STRING, "start": time, "end": time}


def check_sinks(declarations: Iterable[tree.Declaration], result: Mapping[str, ValueType]) -> None:
    """Refuse a sink with a column that the result lacks, or holds as values of another type."""
    for sink in declarations:
        if isinstance(sink, tree.SinkDeclaration):
            for name, declared in declared_attributes(sink).items():
                if name not in result:
                    hint = did_you_mean(name, result)
                    raise UnfitResult(f"the result has no column `{name}` for sink `{sink.name}`", sink.span, hint)
                if not fits(declared, result[name]):
                    raise UnfitResult(
                        f"sink `{sink.name}` declares `{name}` as {declared.value}, but the result holds "
                        f"{result[name].value}",
                        sink.span,
                    )


def fits(declared: ValueType, actual: ValueType) -> bool:
    """Whether a column may be declared so; one that is declared without a type may hold anything."""
    return declared is ValueType.UNKNOWN or comparable(declared, actual, "=")
