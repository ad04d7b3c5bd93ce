"""Runs sequence plans over a table: masks, keys, stacks, construction, negation (SASE §3–4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kleene.engine.columns import ColumnStore
from kleene.engine.keys import key_codes
from kleene.engine.linking import groups, link
from kleene.engine.masks import mask
from kleene.engine.row_types import row_types
from kleene.engine.strings import StringPool
from kleene.engine.timeline import Order, order_of
from kleene.errors import BudgetExceeded
from kleene.frames.rows import BadRow
from kleene.kernels.expression import Code, Ints, room
from kleene.kernels.sequence import construct, forbidden
from kleene.optimize.compile_expression import compile_clauses
from kleene.pattern.expressions import Clause, Which, references
from kleene.pattern.query import BoundQuery
from kleene.plan.layout import Layout
from kleene.plan.physical import Absence, Plan, Scan, SequencePlan
from kleene.plan.program import Program
from kleene.plan.settings import Settings

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Found:
    """What the alternatives of a query found: each variable's rows of the table, −1 where it is absent."""

    # [match, variable of the query]
    rows: Ints
    # The rows of the table that the query's types could concern; `numbers` is `rows` in terms of these.
    relevant: Ints
    numbers: Ints
    order: Order
    # Places of the relevant rows in the order.
    chosen: Ints

    @property
    def bad(self) -> list[BadRow]:
        return self.order.bad


def find_sequences(plan: Plan, table: pa.Table, settings: Settings) -> Found:
    """All matches of a plan that runs on stacks."""
    query = plan.query
    order = order_of(table, query.schema)
    strings = StringPool()
    chosen = _relevant(query, table, order)
    relevant = order.rows[chosen]
    columns = _columns_read(plan)
    # The time column is there to say how many rows there are when nothing else is read.
    own = [query.schema.time] if query.schema.constant_type is not None else [query.schema.time, query.schema.type]
    needed = dict.fromkeys((*own, *columns, *query.partition))
    part = table.select([name for name in needed if name in table.column_names])
    store_table = part.take(pa.array(relevant))
    run = _Run(
        query,
        table,
        order,
        chosen,
        store_table,
        ColumnStore.from_table(store_table, columns, query.schema, strings),
        strings,
        settings,
    )
    pieces = [run.alternative(sequence) for sequence in plan.alternatives]
    numbers = np.concatenate(pieces) if pieces else np.zeros((0, len(query.positives)), np.int64)
    rows = np.where(numbers >= 0, relevant[np.maximum(numbers, 0)] if len(relevant) else -1, -1)
    return Found(rows, relevant, numbers, order, chosen)


def _relevant(query: BoundQuery, table: pa.Table, order: Order) -> Ints:
    """Places in the order of the events whose type some component names."""
    names, codes = row_types(table, query.schema)
    wanted = np.array([name in query.types for name in names], np.bool_)
    return np.flatnonzero(wanted[codes if order.as_given else codes[order.rows]])


def _columns_read(plan: Plan) -> list[str]:
    """The columns that any condition of the plan reads."""
    clauses: list[Clause] = []
    for sequence in plan.alternatives:
        for scan in (*sequence.scans, *(absence.scan for absence in sequence.absences)):
            clauses += scan.mask
            clauses += [clause for event_class in scan.component.classes for clause in event_class.predicate]
        clauses += [clause for place in sequence.during for clause in place]
        clauses += sequence.after
        clauses += [clause for absence in sequence.absences for clause in absence.conditions]
    named = (getattr(reference, "attribute", None) for clause in clauses for reference in references(clause))
    return list(dict.fromkeys(name for name in named if name is not None))


@dataclass(frozen=True)
class _Run:
    query: BoundQuery
    table: pa.Table
    order: Order
    chosen: Ints
    events: pa.Table
    store: ColumnStore
    strings: StringPool
    settings: Settings

    def alternative(self, plan: SequencePlan) -> Ints:
        """One alternative's matches, [match, variable of the query] numbers of relevant events."""
        length = len(plan.scans)
        keys, number = key_codes(self.events, plan.key, np.arange(len(self.chosen), dtype=np.int64))
        in_partition = keys >= 0 if plan.key == self.query.partition else self._in_partition()
        bits = np.zeros(len(self.chosen), np.int64)
        for place, scan in enumerate(plan.scans):
            bits |= (self.instances(scan) & in_partition).astype(np.int64) << place
        starts, ends = self.measured()
        programs = self.programs(plan)
        code, parts = _joined(programs, self.strings)
        window = self.query.window
        matches = construct(
            bits,
            keys,
            self.order.step[self.chosen],
            starts,
            ends,
            length,
            number,
            -1 if window is None else window.size,
            window is not None and window.inclusive,
            plan.window_in_scan,
            plan.window_in_construction,
            code,
            parts,
            self.store.events,
            self.strings.arrays(),
            groups(1, 1),
            room(max([program.depth for program in programs], default=1) + 1),
            length + 2,
            self.settings.max_matches,
        )
        if len(matches) > self.settings.max_matches:
            raise BudgetExceeded(
                f"more than {self.settings.max_matches:,} matches", hint="narrow the window or the conditions"
            )
        for absence in plan.absences:
            matches = matches[~self.dropped(plan, absence, matches, keys, number, starts, ends)]
        return self.by_variable(plan, matches)

    def _in_partition(self) -> Flags:
        """An event whose partition key is NULL matches nothing, whichever attributes the plan partitions by."""
        whole, _ = key_codes(self.events, self.query.partition, np.arange(len(self.chosen), dtype=np.int64))
        return whole >= 0

    def instances(self, scan: Scan) -> Flags:
        """Which relevant events can stand at a place."""
        member = np.zeros(len(self.chosen), np.bool_)
        for event_class in scan.component.classes:
            wanted = [self.strings.code(name) for name in event_class.types]
            # The last place is for NO_TYPE, −1.
            is_wanted = np.zeros(2 + max(*wanted, int(self.store.types.max(initial=-1))), np.bool_)
            is_wanted[wanted] = True
            of_type = is_wanted[self.store.types]
            if event_class.predicate:
                of_type &= mask(event_class.predicate, self.store, self.strings)
            member |= of_type
        return member & mask(scan.mask, self.store, self.strings) if scan.mask else member

    def measured(self) -> tuple[Ints, Ints]:
        """What the window measures: times, or positions in the partition."""
        if self.query.window is None or not self.query.window.events:
            return self.order.start[self.chosen], self.order.end[self.chosen]
        positions = self.positions()[self.chosen]
        return positions, positions

    def positions(self) -> Ints:
        """How many events of its partition are before each event, irrelevant ones included."""
        keys, _ = key_codes(self.table, self.query.partition, self.order.rows)
        names, codes = row_types(self.table, self.query.schema)
        keys[~np.array([self.has_key(name) for name in names], np.bool_)[codes[self.order.rows]]] = -1
        by_key = np.lexsort((self.order.step, keys))
        positions = np.zeros(len(keys), np.int64)
        sorted_keys, sorted_steps = keys[by_key], self.order.step[by_key]
        index = np.arange(len(keys))
        new_key = np.r_[True, sorted_keys[1:] != sorted_keys[:-1]] if len(keys) else np.zeros(0, np.bool_)
        new_step = new_key | np.r_[True, sorted_steps[1:] != sorted_steps[:-1]] if len(keys) else new_key
        key_start = np.maximum.accumulate(np.where(new_key, index, 0))
        step_start = np.maximum.accumulate(np.where(new_step, index, 0))
        positions[by_key] = step_start - key_start
        return positions

    def has_key(self, kind: str | None) -> bool:
        """An event of a type without the key is in no partition and counted in none."""
        attributes = None if kind is None else self.query.schema.attributes_of(kind)
        return attributes is None or all(name in attributes for name in self.query.partition)

    # Programs

    def layout(self, plan: SequencePlan, negated: str | None = None) -> Layout:
        """Slots: the places of the sequence, then one for what is absent, then one for the negated event."""
        length = len(plan.scans)
        places = {scan.component.variable: place for place, scan in enumerate(plan.scans)}
        slots = {
            (component.variable, Which.SINGLE): places.get(component.variable, length)
            for component in self.query.components
        }
        if negated is not None:
            slots[negated, Which.SINGLE] = length + 1
        return Layout(slots, self.store.columns)

    def programs(self, plan: SequencePlan) -> list[Program]:
        """One program a place; what is left for whole sequences is tested with the first place."""
        tests = [list(clauses) for clauses in plan.during]
        tests[0] += plan.after
        return [compile_clauses(clauses, self.layout(plan)) for clauses in tests]

    # Negation

    def dropped(
        self,
        plan: SequencePlan,
        absence: Absence,
        matches: npt.NDArray[np.int32],
        keys: Ints,
        number: int,
        starts: Ints,
        ends: Ints,
    ) -> Flags:
        candidates = np.flatnonzero(self.instances(absence.scan))
        if absence.keyed:
            candidates = candidates[keys[candidates] >= 0]
            of_key = keys[candidates]
            candidates = candidates[np.argsort(of_key, kind="stable")]
            first = np.searchsorted(np.sort(of_key, kind="stable"), np.arange(number + 1))
            match_keys = keys[matches[:, 0]] if len(matches) else np.zeros(0, np.int64)
        else:
            first = np.array([0, len(candidates)], np.int64)
            match_keys = np.zeros(len(matches), np.int64)
        program = compile_clauses(absence.conditions, self.layout(plan, absence.scan.component.variable))
        window = self.query.window
        out = np.zeros(len(matches), np.bool_)
        forbidden(
            matches,
            absence.after,
            match_keys,
            self.order.step[self.chosen],
            starts,
            ends,
            first.astype(np.int64),
            candidates.astype(np.int64),
            -1 if window is None else window.size,
            window is not None and window.inclusive,
            link(program, self.strings),
            self.store.events,
            self.strings.arrays(),
            groups(1, 1),
            room(program.depth + 1),
            len(plan.scans) + 2,
            len(plan.scans) + 1,
            out,
        )
        return out

    def by_variable(self, plan: SequencePlan, matches: npt.NDArray[np.int32]) -> Ints:
        made = np.full((len(matches), len(self.query.positives)), -1, np.int64)
        places = {component.variable: place for place, component in enumerate(self.query.positives)}
        for place, scan in enumerate(plan.scans):
            made[:, places[scan.component.variable]] = matches[:, place]
        return made


def _joined(programs: Sequence[Program], strings: StringPool) -> tuple[Code, Ints]:
    """Several programs in one array each, and where each begins and ends."""
    linked = [link(program, strings) for program in programs]
    parts = np.zeros((len(linked), 6), np.int64)
    at = [0, 0, 0]
    for place, code in enumerate(linked):
        for kind, array in enumerate((code.words, code.ints, code.reals)):
            parts[place, 2 * kind], parts[place, 2 * kind + 1] = at[kind], at[kind] + array.size
            at[kind] += array.size
    joined = Code(*(np.concatenate([code[kind] for code in linked]) for kind in range(3)))
    return joined, parts
