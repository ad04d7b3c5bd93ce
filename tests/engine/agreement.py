"""Random queries and streams on the engine, at once and in pieces, beside the reference."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from unittest import mock

import pyarrow as pa
from tests.soaking import SOAKING, least, rounds

from kleene import decompress
from kleene.engine import engine_state, slices
from kleene.engine.engine import Engine
from kleene.engine.intake.timeline import integers
from kleene.errors import KleeneError
from kleene.frames.arrow import schema_on
from kleene.frames.outputs import Outputs
from kleene.frames.streams import to_table
from kleene.optimize.planner import plan_query
from kleene.optimize.rules import LINE_RULES, LOOK_UP_RUNS
from kleene.pattern import Query, Schema
from kleene.pattern.query import BoundQuery
from kleene.plan.physical import Plan
from kleene.plan.program import NotCompilable
from kleene.plan.settings import Settings
from kleene.testing.generators import GeneratedCase, random_case, schema_of
from kleene.testing.generators.edges import at_the_edge
from kleene.testing.reference_outputs import table_outputs

SETTINGS = [
    Settings(),
    # So few runs are not found by value; `run_lookup_cases` has those that are.
    *(Settings(without=frozenset({name})) for name, _ in LINE_RULES if name != LOOK_UP_RUNS),
    Settings(without=frozenset(dict(LINE_RULES))),
]


# The share of pairs that run in slices as well.
_IN_SLICES = 1.0 if SOAKING else 0.3


@dataclass(frozen=True)
class Pair:
    """A query that the engine can run, its events, and what the reference says."""

    text: str
    bound: BoundQuery
    table: pa.Table
    expected: Outputs[pa.Table]


# Strata that take the lines of others, with these outputs.
OTHERS = {
    "timeouts": (["sequence", "kleene_any", "skip_till_next_match", "negation", "optional"], ["TIMEOUTS INTO late"]),
    "timeouts_agreeing": (["agreeing"], ["TIMEOUTS INTO late"]),
    "timeouts_counted": (["count_window"], ["TIMEOUTS INTO late"]),
    "timeouts_mixed_ends": (["mixed_ends"], ["TIMEOUTS INTO late", "OUTPUT NON_OVERLAP TIMEOUTS INTO late"]),
    "non_overlap_mixed_ends": (["mixed_ends"], ["OUTPUT NON_OVERLAP"]),
    "compressed_mixed_ends": (["mixed_ends"], ["OUTPUT COMPRESSED"]),
    "non_overlap_trees": (["nested", "closure", "conjunction"], ["OUTPUT NON_OVERLAP"]),
    "non_overlap_closures": (["closures"], ["OUTPUT NON_OVERLAP"]),
}


def case_of(draw: random.Random, stratum: str) -> GeneratedCase:
    """A random case of a stratum; one of `edge …` has its times at the edges of 64 bits."""
    if stratum.startswith("edge "):
        return at_the_edge(draw, case_of(draw, stratum.removeprefix("edge ")))
    if stratum not in OTHERS:
        return random_case(draw, stratum)
    lines, outputs = OTHERS[stratum]
    case = random_case(draw, draw.choice(lines))
    return replace(case, query_text=f"{case.query_text} {draw.choice(outputs)}")


def pair_of(case: GeneratedCase) -> Pair | None:
    """None when the query is wrong, too much for the reference, or stays there."""
    schema = Schema(**schema_of(case))
    query = Query(case.query_text, params=dict(case.params or {}))
    try:
        table, given = to_table(case.events, schema.declaring(query.tree.declarations))
        bound = query.bind(schema_on(table.schema, given))
        if plan_query(bound).why_on_reference is not None:
            return None
        return Pair(case.query_text, bound, table, table_outputs(table, [query], schema=given))
    except KleeneError:
        return None


@dataclass
class Ran:
    matches: list[str]
    timeouts: list[str]
    bad: int


def at_once(pair: Pair, settings: Settings, draw: random.Random, plan: Plan | None = None) -> Ran:
    """Rows shuffled, in two chunks: neither may matter."""
    rows = list(range(pair.table.num_rows))
    draw.shuffle(rows)
    halves = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    table = pa.concat_tables([pair.table.take(pa.array(half, pa.int64())) for half in halves])
    engine = Engine(pair.bound, settings, plan)
    bad = engine.process(table).bad
    made = engine.finish()
    return Ran(content(made.matches), content(made.timeouts), len(bad))


def in_pieces(pair: Pair, settings: Settings, draw: random.Random, *, saving: bool, plans: Sequence[Plan] = ()) -> Ran:
    """Rows a little out of order, in batches with a watermark; restored from a snapshot between some of them.

    plans   what it runs under first, and then under any of them, where that is not left to the planner
    """
    budget = replace(settings.budget, state_bytes=1 << 40)
    engine = Engine(pair.bound, replace(settings, budget=budget), plans[0] if plans else None)
    table = pair.table
    times = [value.as_py() for value in table.column(pair.bound.schema.time)]
    known = integers(table.filter(pa.array([time is not None for time in times])).column(pair.bound.schema.time))
    ends: list[int | None] = []
    following = iter(known.tolist())
    for time in times:
        ends.append(None if time is None else next(following))
    noise = draw.choice([0, 0, 2, 5])
    order = sorted(range(len(ends)), key=lambda row: (ends[row] or 0) + draw.randint(0, noise))
    ran = Ran([], [], 0)
    at = 0
    while at < len(order):
        size = draw.randint(1, max(1, len(order) // 2))
        batch = table.take(pa.array(order[at : at + size], pa.int64()))
        at += size
        left = [end for end in (ends[row] for row in order[at:]) if end is not None]
        watermark = min(left, default=max(known.tolist(), default=0) + 1) - draw.choice([0, 0, 1])
        made = engine.process(batch, None if draw.random() < 0.2 else watermark)
        assert made.late is not None
        assert made.late.num_rows == 0
        ran.matches += content(made.matches)
        ran.timeouts += content(made.timeouts)
        ran.bad += len(made.bad)
        if saving and draw.random() < 0.5:
            other = draw.choice([settings, Settings()])
            plan = draw.choice(plans) if plans else None
            engine = Engine.restore(pair.bound, engine.snapshot(), replace(other, budget=budget), plan)
    made = engine.finish()
    ran.matches += content(made.matches)
    ran.timeouts += content(made.timeouts)
    return ran


def in_slices(pair: Pair, settings: Settings, number: int, plan: Plan | None = None) -> Ran:
    """Rows in the order of time, on several threads, however few there are."""
    table = pair.table.sort_by(pair.bound.schema.time)
    with mock.patch.multiple(slices, FEWEST_ROWS=1, _DENSE=0, MOST_TWICE=1e9):
        made = Engine(pair.bound, settings, plan).finish(table, threads=number)
    return Ran(content(made.matches), content(made.timeouts), len(made.bad))


@contextmanager
def eager_rebuilding() -> Iterator[None]:
    """Make the store anew at every chance, not only when it is worth it."""
    with mock.patch.object(engine_state, "_WORTH_IT", 0):
        yield


def content(table: pa.Table | None) -> list[str]:
    """Every row whole, ids included; graphs may differ, so the matches that they hold stand in their place."""
    if table is None:
        return []
    rows = table.to_pylist()
    if "graph" in table.column_names and "last" in table.column_names:
        rows = [{**row, "graph": list(decompress([row], within=rows))} for row in rows]
    return list(map(repr, rows))


def check(pair: Pair, settings: Settings, draw: random.Random, plans: Sequence[Plan] = ()) -> bool:
    """Whether the engine ran it: what has no program stays on the reference.

    plans   the first is tried, and changes to any of them; none: what the planner chooses
    """
    try:
        _check(pair, settings, draw, plans)
    except NotCompilable:
        return False
    return True


def _check(pair: Pair, settings: Settings, draw: random.Random, plans: Sequence[Plan]) -> None:
    expected, timeouts = content(pair.expected.matches), content(pair.expected.timeouts)
    whole = at_once(pair, settings, draw, plans[0] if plans else None)
    assert sorted(whole.matches) == sorted(expected), pair.text
    assert whole.matches == expected, f"the order differs: {pair.text}"
    assert sorted(whole.timeouts) == sorted(timeouts), pair.text
    assert whole.bad == pair.expected.bad_rows.num_rows
    # Some are enough: what runs on a slice is what runs on a table.
    own = random.Random(pair.text)
    if own.random() < _IN_SLICES:
        assert in_slices(pair, settings, own.randint(2, 5), plans[0] if plans else None) == whole, pair.text
    with eager_rebuilding():
        pieces = in_pieces(pair, settings, draw, saving=draw.random() < 0.5, plans=plans)
    assert sorted(pieces.matches) == sorted(expected), f"in pieces: {pair.text}"
    assert sorted(pieces.timeouts) == sorted(timeouts), f"in pieces: {pair.text}"
    assert pieces.bad == pair.expected.bad_rows.num_rows


# How many random cases each stratum draws: as many as give enough pairs, and enough of them with a match.
STRATA = {
    "sequence": 144,
    "strict_contiguity": 144,
    "partition_contiguity": 144,
    "skip_till_next_match": 126,
    "kleene_any": 126,
    "negation": 126,
    "optional": 108,
    "disjunction": 279,
    "conjunction": 135,
    "nested": 135,
    "closure": 135,
    "ties": 135,
    "tie_breaker": 126,
    "durations": 135,
    "durations_strict": 135,
    "durations_partition": 153,
    "durations_counted": 153,
    "nulls_missing": 180,
    "count_window": 126,
    "non_overlap": 108,
    "compressed": 126,
    "arithmetic": 117,
    "boolean_conditions": 216,
    "timeouts": 297,
    "agreeing": 117,
    "timeouts_agreeing": 153,
    "timeouts_counted": 126,
    "mixed_ends": 126,
    "non_overlap_mixed_ends": 108,
    "compressed_mixed_ends": 108,
    "timeouts_mixed_ends": 126,
    "non_overlap_trees": 135,
    "negated_groups": 198,
    "negated_pairs": 297,
}
# In each stratum: three and a half thousand pairs in all.
PAIRS, MATCHED = 100, 45


def compare(stratum: str, seeds: range) -> tuple[int, int]:
    """How many pairs ran on the engine, and how many of them had a match."""
    pairs = matched = 0
    for seed in seeds:
        draw = random.Random(f"{stratum} {seed}")
        pair = pair_of(case_of(draw, stratum))
        if pair is None or not check(pair, SETTINGS[seed % len(SETTINGS)], draw):
            continue
        pairs += 1
        expected = pair.expected
        outputs = expected.matches if expected.timeouts is None else expected.timeouts
        matched += outputs.num_rows > 0
    return pairs, matched


# What two files test, each half of the strata, so that both run at once.
HALVES = list(STRATA)[:16], list(STRATA)[16:]


def agree(stratum: str, record_property: Callable[[str, object], None]) -> None:
    pairs, matched = compare(stratum, range(rounds(STRATA[stratum])))
    record_property("counted", f"engine = reference: {stratum:22} {pairs:4} pairs, {matched:4} with matches")
    assert pairs >= least(PAIRS)
    assert matched >= least(MATCHED)


def agree_at_a_glance(stratum: str) -> None:
    """Other cases than the many, so that these too are worth their time."""
    _, matched = compare(stratum, range(10_000, 10_012))
    assert matched
