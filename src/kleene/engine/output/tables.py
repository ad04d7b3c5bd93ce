"""Matches and timeouts as tables with the documented columns, in the documented order, built by column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kleene.engine.executors.windows import NEVER
from kleene.engine.intake.columns import ColumnStore
from kleene.engine.intake.strings import StringPool
from kleene.engine.intake.timeline import ranks
from kleene.engine.output.gathering import Columns, constant, time_column
from kleene.engine.output.identity import Hashes, match_ids, used_hashes
from kleene.engine.output.matches import ColumnarMatches, Matches
from kleene.engine.output.ordering import Ordered, Spans, in_order
from kleene.engine.output.returned import Returned
from kleene.engine.output.selected import Selected
from kleene.engine.state.event_rows import EventRows
from kleene.frames.arrow import value_type
from kleene.frames.numbers import to_arrow, to_numpy
from kleene.frames.results import result_schema, timeout_schema
from kleene.kernels.expression import Ints
from kleene.pattern.expressions import Whole
from kleene.pattern.links import key_of
from kleene.pattern.query import BoundQuery
from kleene.pattern.recent import Recent
from kleene.pattern.schema import EVENTS, FIRST_TIE, IDENTITY, LAST_TIE, OWNER, OWNER_DIGEST, SHARED_ID
from kleene.pattern.types import TIMES, ValueType

# Columns are built in pieces of so many references, so that offsets of 32 bits are enough for the strings in them.
PIECE = 1 << 24


class MatchOwners(NamedTuple):
    """The queries that matches are of, where one table has the matches of several that are alike."""

    names: pa.Array  #  [match]
    digests: Hashes  #  [match]: the hashes that identify the queries in match ids


def match_table(
    query: BoundQuery,
    rows: EventRows,
    spans: Spans,
    matches: Matches,
    store: ColumnStore,
    strings: StringPool,
    owners: MatchOwners | None = None,
    *,
    since: int | None = None,
) -> pa.Table:
    """One row a match; event number n is row n. `NotCompilable` where a RETURN has no program.

    owners   the queries of the matches; without them the events say it, or all matches are of `query`
    since    when the first of them ends that are wanted; None: all are
    """
    schema = result_schema(query, rows.schema)
    columns = Columns(rows, agreed_columns(query, rows.schema))
    returned = Returned.of(query, columns, store, strings)
    hashes = used_hashes(query, rows, spans.step, matches)
    pieces = []
    ordered = in_order(matches, spans)
    if since is not None:
        ordered = ordered.since(since, matches, spans)
    for part in _pieces(matches, ordered):
        columns.forget()
        selected = Selected.of(query, matches, part)
        arrays = _common(query, columns, part, selected, schema)
        own = _owners(owners, columns, selected, part)
        if own is not None:
            arrays["query"] = own.names
        arrays["match_id"] = match_ids(query, selected, hashes, None if own is None else own.digests)
        if query.returns is None and not query.listed:
            arrays |= {c.variable: _variable(columns, selected, c.variable, schema) for c in query.positives}
        for column in query.returns or ():
            if isinstance(column.value, Whole):
                arrays[column.name] = _variable(columns, selected, column.value.variable, schema, column.name)
        arrays |= returned.columns(selected)
        if query.listed:
            arrays |= _listed(query, columns, matches.take(part.numbers), spans, schema)
        piece = pa.Table.from_arrays([arrays[name] for name in schema.names], schema=schema)
        if own is not None and owners is None:
            # Of several queries that have the same match.
            piece = piece.append_column(SHARED_ID, match_ids(query, selected, hashes))
        pieces.append(piece)
    return pa.concat_tables(pieces)


def agreed_columns(query: BoundQuery, columns: pa.Schema) -> frozenset[str]:
    """The columns in which all events of a match have the same value to the bit: its key, unless that is of reals."""
    return _AGREED.get(query, columns, lambda: _agreed(query, columns))


_AGREED: Recent[frozenset[str]] = Recent()


def _agreed(query: BoundQuery, columns: pa.Schema) -> frozenset[str]:
    exact = TIMES | {ValueType.INT, ValueType.BOOL, ValueType.STRING, ValueType.DURATION}
    there = [name for name in key_of(query) if name in columns.names]
    return frozenset(name for name in there if value_type(columns.field(name).type) in exact)


def _owners(owners: MatchOwners | None, columns: Columns, selected: Selected, part: Ordered) -> MatchOwners | None:
    """The queries of matches in an order, where these are several: given, or of their first events."""
    if owners is not None:
        return MatchOwners(owners.names.take(to_arrow(part.numbers)), owners.digests[part.numbers])
    if OWNER not in columns.rows.column_names:
        return None
    numbers, digests = (columns.take(name, selected.first, absent=False) for name in (OWNER, OWNER_DIGEST))
    return MatchOwners(numbers.cast(pa.string()), to_numpy(digests).astype(np.uint64))


def timeout_table(query: BoundQuery, rows: EventRows, spans: Spans, prefixes: Matches, closed: Ints) -> pa.Table:
    """One row per run start that never became a match: how far it came.

    closed   [prefix]: when its window closed, `NEVER` where nothing closed it
    """
    schema = timeout_schema(query, rows.schema)
    columns = Columns(rows)
    hashes = used_hashes(query, rows, spans.step, prefixes) if query.identified else None
    pieces = []
    for part in _pieces(prefixes, in_order(prefixes, spans)):
        columns.forget()
        selected = Selected.of(query, prefixes, part)
        arrays = _common(query, columns, part, selected, schema)
        arrays["stream"] = constant(str(query.timeouts), selected.size)
        arrays["reached"] = to_arrow(_reached(selected))
        moments = closed[part.numbers]
        open_ones = moments == NEVER
        moments[open_ones] = 0
        known = time_column(moments, schema.field("closed").type)
        arrays["closed"] = pc.if_else(to_arrow(open_ones), None, known) if open_ones.any() else known
        arrays |= {c.variable: _variable(columns, selected, c.variable, schema) for c in query.positives}
        if hashes is not None:
            arrays[IDENTITY] = match_ids(query, selected, hashes)
        if LAST_TIE in schema.names:
            latest = prefixes.take(part.numbers).latest.astype(np.int32)
            arrays[LAST_TIE] = columns.take(str(query.schema.tie_breaker), latest, absent=False)
        pieces.append(pa.Table.from_arrays([arrays[name] for name in schema.names], schema=schema))
    return pa.concat_tables(pieces)


def _pieces(matches: Matches, ordered: Ordered) -> Iterator[Ordered]:
    """Matches in pieces of about `PIECE` references: at least one piece, and at least one match in each."""
    if matches.number <= PIECE:
        yield ordered
        return
    if isinstance(matches, ColumnarMatches):
        step = max(PIECE // len(matches.places), 1)
        yield from (ordered.part(begin, min(begin + step, ordered.size)) for begin in range(0, ordered.size, step))
        return
    references = np.cumsum(np.diff(matches.offsets)[ordered.numbers])
    begin = 0
    while begin < len(references):
        before = references[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(references, before + PIECE, side="right")))
        yield ordered.part(begin, end)
        begin = end


def _common(
    query: BoundQuery, columns: Columns, part: Ordered, selected: Selected, schema: pa.Schema
) -> dict[str, pa.Array]:
    time = schema.field("start").type
    arrays = {"query": constant(query.name, selected.size)}
    if part.times is not None:
        arrays |= {name: time_column(steps, time) for name, steps in part.times._asdict().items()}
    else:
        assert selected.last is not None, "matches of single events have a last one"
        for name, events in (("start", selected.first), ("end", selected.last)):
            arrays[name] = columns.take(query.schema.time, events, absent=False)
    if "key" in schema.names:
        kind = schema.field("key").type
        arrays["key"] = columns.events(selected.first, kind, may_be_absent=not selected.is_complete)
    return arrays


def _variable(
    columns: Columns, selected: Selected, variable: str, schema: pa.Schema, name: str | None = None
) -> pa.Array:
    """A struct or a list of structs for each match."""
    kind = schema.field(name or variable).type
    if variable in selected.singles:
        rows, may_be_absent = selected.singles[variable], not selected.is_complete
        return columns.events(rows, kind, selected.first, may_be_absent=may_be_absent)
    return columns.event_lists(*selected.lists[variable], kind)


def _listed(
    query: BoundQuery, columns: Columns, matches: Matches, spans: Spans, schema: pa.Schema
) -> dict[str, pa.Array]:
    """All events of each match in a list, and the tie-breakers of the first and last where the schema has them."""
    kind = schema.field(EVENTS).type
    item = kind.value_type
    names = pa.array([component.variable for component in query.positives], pa.string())
    items = pa.StructArray.from_arrays(
        [
            names.take(to_arrow(matches.variables)),
            to_arrow(matches.positions),
            columns.events(matches.events.astype(np.int32), item.field("event").type),
        ],
        fields=list(item),
    )
    arrays = {EVENTS: pa.ListArray.from_arrays(to_arrow(matches.offsets.astype(np.int32)), items, type=kind)}
    if LAST_TIE in schema.names:
        tie = str(query.schema.tie_breaker)
        arrays[LAST_TIE] = columns.take(tie, matches.latest.astype(np.int32), absent=False)
        first = _first(matches, spans.start, ranks(columns.rows.column(tie)))
        arrays[FIRST_TIE] = columns.take(tie, first.astype(np.int32), absent=False)
    return arrays


def _first(matches: Matches, starts: Ints, ties: Ints) -> Ints:
    """[match]: the event that starts first; of several, that with the least tie-breaker."""
    match_of = np.repeat(np.arange(len(matches)), np.diff(matches.offsets))
    order = np.lexsort((ties[matches.events], starts[matches.events], match_of))
    return matches.events[order][matches.offsets[:-1]]


def _reached(selected: Selected) -> Ints:
    """How many variables are present in each match."""
    reached = np.zeros(selected.size, np.int64)
    for rows in selected.singles.values():
        reached += rows >= 0
    for _, offsets in selected.lists.values():
        reached += offsets[1:] > offsets[:-1]
    return reached
