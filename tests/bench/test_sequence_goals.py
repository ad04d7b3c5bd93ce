"""What the bench of sequences compares is the same: digests see order, peers give our rows, variants ask the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from kleene.testing import reference_match

# Benchmarks are not part of the source distribution, and need peers that the library does not.
pytest.importorskip("polars")
pytest.importorskip("duckdb")
pytest.importorskip("bench.sequence_goals")

from bench.cliffs import INTEGERS, Cliff, variants_of
from bench.digests import AnswersDiffer, agreed, digest
from bench.flink_peer import flink_events
from bench.measure import Timing, alternate
from bench.running import found
from bench.sequence_goals import OURS, ROWS, Comparison, check_rows
from bench.sequence_inputs import SequenceInput
from bench.workloads import Sequence, bystanders, sase, sequence

from bench import digests, peers

SHORT = 1_200
DENSE = SequenceInput("dense", sase(SHORT, 8, seed=5), sequence(window=400))
PAIRS = SequenceInput("pairs", bystanders(SHORT, seed=5)[0], Sequence(("A", "B"), (), 100))
KEYLESS = SequenceInput("no key", sase(SHORT, 8, seed=5), sequence(window=200, keys=()))


def ids(*chunks: list[str]) -> pa.ChunkedArray:
    return pa.chunked_array(list(chunks), pa.string())


def test_a_digest_sees_order_and_borders_but_not_chunks() -> None:
    assert digest(ids(["a", "b", "c"])) == digest(ids(["a"], [], ["b", "c"]))
    others: tuple[list[str], ...] = (["b", "a", "c"], ["a", "b"], ["ab", "c"], ["a", "bc"], ["a", "b", "c", "c"], [])
    assert len({digest(ids(chunk)) for chunk in (["a", "b", "c"], *others)}) == len(others) + 1


def test_a_slice_has_the_digest_of_its_rows() -> None:
    assert digest(ids(["x", "a", "b"]).slice(1)) == digest(ids(["a", "b"]))


def test_plans_agree_on_the_reference() -> None:
    expected = reference_match(DENSE.table, DENSE.sequence.text).ids
    assert len(expected) > 10
    assert agreed("dense", DENSE.table, DENSE.sequence.text, 300) == digest(ids(expected))


@pytest.mark.parametrize("side", ["found", "found_with"])
def test_swapped_rows_are_no_agreement(side: str, monkeypatch: pytest.MonkeyPatch) -> None:
    honest: Callable[..., pa.Table] = getattr(digests, side)

    def swapped(*arguments: object, **named: object) -> pa.Table:
        table = honest(*arguments, **named)
        order = np.arange(table.num_rows)
        order[:2] = order[:2][::-1]
        return table.take(pa.array(order))

    monkeypatch.setattr(digests, side, swapped)
    with pytest.raises(AnswersDiffer, match="answers differ"):
        agreed("dense", DENSE.table, DENSE.sequence.text, 300)


def test_cores_that_differ_in_a_value_are_no_agreement(monkeypatch: pytest.MonkeyPatch) -> None:
    def altered(table: pa.Table, text: str, threads: int | None = 1) -> pa.Table:
        rows = found(table, text)
        return rows if threads == 1 else rows.set_column(2, "start", pa.array(np.zeros(rows.num_rows, np.int64)))

    monkeypatch.setattr(digests, "found", altered)
    with pytest.raises(AnswersDiffer, match="bytes"):
        agreed("dense", DENSE.table, DENSE.sequence.text, 300)


@pytest.mark.parametrize("asked", [DENSE, PAIRS, KEYLESS], ids=lambda asked: asked.name)
def test_every_spelling_in_polars_gives_our_rows(asked: SequenceInput) -> None:
    expected = found(asked.table, asked.sequence.text).num_rows
    assert expected > 10
    counters = peers.polars_joins(asked.table, asked.sequence)
    assert {name: count() for name, count in counters.items()} == dict.fromkeys(counters, expected)
    for give in peers.polars_rows(asked.table, asked.sequence).values():
        check_rows(asked, give)


def test_rows_of_polars_hold_all_columns_of_events() -> None:
    frame = peers.polars_rows(DENSE.table, DENSE.sequence)["Polars buckets/1"]()
    ours = found(DENSE.table, DENSE.sequence.text)
    for name in ("v1", "v2", "v3"):
        theirs = sorted(frame[name].to_list(), key=lambda event: event["ts"])
        assert theirs == sorted(ours[name].to_pylist(), key=lambda event: event["ts"])


def test_rows_of_other_events_are_refused() -> None:
    give = peers.polars_rows(DENSE.table, DENSE.sequence)["Polars buckets/1"]
    with pytest.raises(AnswersDiffer):
        check_rows(DENSE, lambda: give().head(5))
    with pytest.raises(AnswersDiffer):
        check_rows(DENSE, lambda: give().with_columns(v2="v1"))


def test_variants_ask_the_same_of_the_same_events() -> None:
    variants = variants_of(DENSE, np.random.default_rng(1))
    matches = {name: found(each.table, each.text) for name, each in variants.items()}
    plain = matches[INTEGERS]
    spans = set(zip(plain["start"].to_pylist(), plain["end"].to_pylist(), strict=True))
    for name in ("string types", "string keys", "string types and keys", "shuffled rows", "chunks of 1,000"):
        assert matches[name]["start"].equals(plain["start"]), name
        assert matches[name]["end"].equals(plain["end"]), name
    for name in ("condition", "negation"):
        some = zip(matches[name]["start"].to_pylist(), matches[name]["end"].to_pylist(), strict=True)
        assert set(some) <= spans
        assert 0 < matches[name].num_rows < plain.num_rows
    assert 0.9 < matches["times twice"].num_rows / plain.num_rows <= 1.0
    assert variants["chunks of 1,000"].table["ts"].num_chunks == 2
    assert not variants["shuffled rows"].table.equals(DENSE.table)


def test_without_a_key_none_is_made_a_string() -> None:
    assert not any("keys" in name for name in variants_of(KEYLESS, np.random.default_rng(1)))


def timing(*seconds: float) -> Timing:
    return Timing(seconds, 7, seconds)


def comparison(ours: float, counting: float, rows: float, name: str = "W4") -> Comparison:
    sides = {OURS: ours, "Polars a": counting, "Polars b": 9.0, f"Polars a{ROWS}": rows, "DuckDB c": 0.001}
    return Comparison(name, 1_000, 1, {side: timing(seconds) for side, seconds in sides.items()})


def test_a_goal_is_met_beside_counting_and_beside_rows() -> None:
    assert comparison(1.0, 1.1, 1.2).verdict().met
    assert not comparison(1.0, 0.9, 1.2).verdict().met
    assert not comparison(1.0, 1.1, 0.9).verdict().met
    assert comparison(1.0, 0.75, 1.1, "no key").verdict().met
    assert not comparison(1.0, 0.65, 1.1, "no key").verdict().met
    assert "1.10 x" in comparison(1.0, 1.1, 1.2).verdict().line()


def test_a_cliff_is_the_variants_rate_by_that_of_integers() -> None:
    cliff = Cliff("W4", "negation", 1_000, timing(1.0, 2.0, 9.0), timing(5.0, 8.0, 9.0))
    assert (cliff.ratio.median, cliff.ratio.least) == (0.25, 0.2)


def test_processor_time_stands_beside_the_clock() -> None:
    measured = alternate({"a": lambda: sum(range(200_000)) * 0 + 3}, repeats=2)["a"]
    assert measured.count == 3
    assert len(measured.processor_seconds) == 2
    assert 0 < measured.processor <= measured.processor_seconds[0]


def test_flink_is_told_the_place_of_each_type() -> None:
    asked = SequenceInput("two", DENSE.table, Sequence(("E3", "E1"), ("attr1",), 10))
    told = flink_events(asked).to_pylist()
    expected = {"E3": 1, "E1": 2}
    for event, row in zip(DENSE.table.to_pylist(), told, strict=True):
        assert row == {"place": expected.get(event["type"], 0), "ts": event["ts"], "key": event["attr1"]}
