"""Events as users have them, beside the plain streams of the papers: no way to write them may be a cliff (G1).

Every variant asks the same of the same events, or a little more, and is timed in turn with the integers that it was
made from: types and keys as plain strings, times that occur twice, rows in no order, many chunks, a condition between
variables, a negated event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.cores import on_cores
from bench.digests import agreed
from bench.measure import Timing, Verdict, alternate, profile
from bench.running import rows_found
from bench.sequence_goals import REPEATS, Ratio
from bench.sequence_inputs import SequenceInput, inputs, keyed
from bench.workloads import VALUES_OF_ATTR2, sequence

GOAL = 1 / 3
CHUNK_ROWS = 1_000
MANY_KEYS = 1_000_000
INTEGERS = "integers"
# The workload whose variants are checked by other plans and by the reference evaluator.
CHECKED = "W1 V=1,000"
REFERENCE_EVENTS = 400


@dataclass(frozen=True)
class Asked:
    """A table and the text of a query."""

    table: pa.Table
    text: str


Variant = Callable[[SequenceInput, np.random.Generator], Asked]


def string_types(asked: SequenceInput, rng: np.random.Generator) -> Asked:
    return Asked(_replaced(asked.table, "type", asked.table["type"].cast(pa.string())), asked.sequence.text)


def string_keys(asked: SequenceInput, rng: np.random.Generator) -> Asked:
    table = asked.table
    for key in asked.sequence.keys:
        table = _replaced(table, key, pc.binary_join_element_wise("card-", table[key].cast(pa.string()), ""))
    return Asked(table, asked.sequence.text)


def all_strings(asked: SequenceInput, rng: np.random.Generator) -> Asked:
    return string_types(SequenceInput(asked.name, string_keys(asked, rng).table, asked.sequence), rng)


def times_twice(asked: SequenceInput, rng: np.random.Generator) -> Asked:
    """Two events each time, in half the time and half the window."""
    halved = replace(asked.sequence, window=asked.sequence.window // 2)
    return Asked(_replaced(asked.table, "ts", pc.divide(asked.table["ts"], 2)), halved.text)


def shuffled(asked: SequenceInput, rng: np.random.Generator) -> Asked:
    order = pa.array(rng.permutation(asked.table.num_rows))
    return Asked(asked.table.take(order).combine_chunks(), asked.sequence.text)


def many_chunks(asked: SequenceInput, rng: np.random.Generator) -> Asked:
    return Asked(pa.Table.from_batches(asked.table.to_batches(CHUNK_ROWS)), asked.sequence.text)


def condition(asked: SequenceInput, rng: np.random.Generator) -> Asked:
    last = f"v{len(asked.sequence.types)}"
    return Asked(asked.table, asked.sequence.asking(condition=f"v1.attr2 <= {last}.attr2"))


def negation(asked: SequenceInput, rng: np.random.Generator) -> Asked:
    names = asked.table["type"].combine_chunks().dictionary.to_pylist()
    other = next(name for name in names if name not in asked.sequence.types)
    return Asked(asked.table, asked.sequence.asking(forbidden=other))


VARIANTS: dict[str, Variant] = {
    "string types": string_types,
    "string keys": string_keys,
    "string types and keys": all_strings,
    "times twice": times_twice,
    "shuffled rows": shuffled,
    f"chunks of {CHUNK_ROWS:,}": many_chunks,
    "condition": condition,
    "negation": negation,
}
NEED_A_KEY = frozenset({"string keys", "string types and keys"})


@dataclass(frozen=True)
class Cliff:
    """A variant of a workload beside its integers, on one core."""

    workload: str
    variant: str
    events: int
    integers: Timing
    timing: Timing
    profile: str = ""

    @property
    def ratio(self) -> Ratio:
        return Ratio.of(self.timing, self.integers)

    def line(self) -> str:
        rates = f"{self.integers.rate(self.events):10.1f}{self.timing.rate(self.events):10.1f}"
        return f"{self.workload:16}{self.variant:24}{self.timing.count:11,}{rates}    {self.ratio.cell()}"


def cliffs(events: int, seed: int) -> list[Verdict]:
    """One goal a variant, judged by the workload that suffers most."""
    print(f"\nG1, cliffs: {events:,} events (no key: a fifth), seed {seed}, one core; million events/s by medians")
    print(
        f"{'':16}{'':24}{'matches':>11}{'integers':>10}{'variant':>10}    "
        f"variant / integers by medians, minima, processor time",
        flush=True,
    )
    measured = on_cores(1, _cliffs, events, seed)
    by_variant: dict[str, list[Cliff]] = {}
    for cliff in measured:
        by_variant.setdefault(cliff.variant, []).append(cliff)
    return [_verdict(name, of_it) for name, of_it in by_variant.items()]


def _verdict(name: str, measured: list[Cliff]) -> Verdict:
    worst = min(measured, key=lambda cliff: cliff.ratio.median)
    figures = "; ".join(f"{each.workload} {each.ratio.median:.2f} ({each.ratio.processor:.2f})" for each in measured)
    text = f"{name} beside integers, by medians (by processor time): {figures}; goal {GOAL:.2f}"
    return Verdict("G1", worst.ratio.median >= GOAL, text, worst.profile)


def _cliffs(events: int, seed: int) -> list[Cliff]:
    rng = np.random.default_rng(seed)
    measured = []
    for asked in _streams(events, seed, rng):
        measured += _measured(asked, rng)
    measured += _many_keys(events, seed, rng)
    return measured


def _streams(events: int, seed: int, rng: np.random.Generator) -> Iterator[SequenceInput]:
    """Those of G1, each with `attr2`; without a key, a fifth of the events, as matches are many."""
    for asked in inputs(events, seed):
        table = asked.table if asked.sequence.keys else asked.table.slice(0, events // 5)
        if "attr2" not in table.column_names:
            table = table.append_column("attr2", pa.array(rng.integers(0, VALUES_OF_ATTR2, table.num_rows)))
        yield SequenceInput(asked.name, table, asked.sequence)


def variants_of(asked: SequenceInput, rng: np.random.Generator) -> dict[str, Asked]:
    """The integers first."""
    makers = {name: make for name, make in VARIANTS.items() if asked.sequence.keys or name not in NEED_A_KEY}
    plain = Asked(asked.table, asked.sequence.text)
    return {INTEGERS: plain, **{name: make(asked, rng) for name, make in makers.items()}}


def _measured(asked: SequenceInput, rng: np.random.Generator) -> list[Cliff]:
    variants = variants_of(asked, rng)
    if asked.name == CHECKED:
        for name, variant in variants.items():
            agreed(f"{asked.name}, {name}", variant.table, variant.text, REFERENCE_EVENTS)
    return _timed(asked.name, variants)


def _many_keys(events: int, seed: int, rng: np.random.Generator) -> list[Cliff]:
    """As many keys as events, and a window as long as the stream, so that there are matches."""
    wide = keyed(events, min(MANY_KEYS, events), seed)
    asked = SequenceInput(f"V={min(MANY_KEYS, events):,}", wide.table, sequence(window=events))
    chosen = {name: variant for name, variant in variants_of(asked, rng).items() if name in {INTEGERS, *NEED_A_KEY}}
    return _timed(asked.name, chosen)


def _timed(workload: str, variants: dict[str, Asked]) -> list[Cliff]:
    works = {name: partial(rows_found, each.table, each.text) for name, each in variants.items()}
    timings = alternate(works, REPEATS, same=False)
    cliffs = []
    for name in list(variants)[1:]:
        events = variants[name].table.num_rows
        cliff = Cliff(workload, name, events, timings[INTEGERS], timings[name])
        if cliff.ratio.median < GOAL:
            cliff = Cliff(workload, name, events, timings[INTEGERS], timings[name], profile(works[name]))
        print(cliff.line(), flush=True)
        cliffs.append(cliff)
    return cliffs


def _replaced(table: pa.Table, name: str, values: pa.ChunkedArray) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, values)
