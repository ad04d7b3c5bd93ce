"""Wrong expressions of streams as a user meets them: one error, with its code, a caret at the place, and a hint."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
import pytest

import kleene
from kleene.algebra.cutting import cut
from kleene.algebra.query import StreamQuery
from kleene.engine.streams.engine import StreamEngine
from kleene.errors import KleeneError, UnboundedState
from kleene.plan.settings import Budget, Settings

EVENTS = {
    "A": [{"ts": 1, "x": 1, "k": 1}],
    "B": [{"ts": 2, "y": 2, "k": 1}],
}

BAD = [
    ("σ{A.x > 1} ∘ π{k}(A)", "KL203", "x", "π has dropped `A.x`: keep it there, or test it below"),
    ("A ∪ B", "KL421", "B", "give both the same attributes"),
    ("σ{x > x.last}(A)", "KL422", "x.last", "the value itself is `x`"),
    ("μ{ID, k > 0}(A, B)", "KL423", "μ{ID, k > 0}(A, B)", "say what it begins with: `init B.y ↦ …`"),
    ("A publish A", "KL420", "A", "a stream cannot be made of itself"),
    ("σ{B.z > 1}(A ; B)", "KL203", "z", "known here: `k`, `y`"),
    ("α{ts ↦ x + 1}(A) publish Later", "KL210", "α{ts ↦ x + 1}(A)", "call the attribute otherwise: `ρ{ts ↦ ts_}(…)`"),
    ("ρ{x ↦ type}(A) publish Later", "KL210", "ρ{x ↦ type}(A)", "call the attribute otherwise"),
    ("A a ; A b publish Pair", "KL208", "Pair", "rename them before: ρ{… ↦ …}, or leave some out: π{…}"),
    ("σ{x > 1}(A start)", "KL210", "start", "call it otherwise"),
    ("π{k} ∘ σ{x > 1}(A) ; ρ{x ↦ match_id}(A)", "KL210", "ρ{x ↦ match_id}(A)", "call it otherwise"),
]


@pytest.mark.parametrize(("text", "code", "caret", "hint"), BAD, ids=[text for text, *_ in BAD])
def test_one_error_with_its_place(text: str, code: str, caret: str, hint: str) -> None:
    with pytest.raises(KleeneError) as caught:
        kleene.match(EVENTS, text)
    error = caught.value
    assert error.code == code, error.render()
    assert error.span is not None
    assert text[error.span.start : error.span.end] == caret, error.render()
    assert hint in str(error.hint), error.render()


def test_dur_on_timestamps_without_a_tick() -> None:
    rows = [{"type": "A", "ts": datetime(2026, 1, 1)}]
    with pytest.raises(KleeneError) as caught:
        kleene.match(rows, "A ;{DUR < 5 min} A")
    assert caught.value.code == "KL425"
    assert "`DECLARE STREAM (tick 1 second)`" in str(caught.value.hint)


def test_what_is_published_may_have_the_columns_of_results_and_of_no_event() -> None:
    """Only the roles of this stream's columns are taken: another stream may have an attribute called `type`."""
    rows = [{"kind": "A", "ts": 1, "x": 1}]
    schema = kleene.Schema(type="kind")
    found = kleene.match(rows, ["ρ{x ↦ type}(A) publish Later", "PATTERN Later l WHERE l.type = 1"], schema=schema)
    assert sorted(match["query"] for match in found)[0] == "Later"
    assert len(found) == 2
    with pytest.raises(KleeneError, match="`kind` is a column of every event"):
        kleene.match(rows, "ρ{x ↦ kind}(A) publish Later", schema=schema)


def test_a_cycle_of_a_pattern_and_a_stream() -> None:
    queries = ["σ{x > 1}(B) publish C", "PATTERN C c RETURN c.x AS x INTO B"]
    with pytest.raises(KleeneError) as caught:
        kleene.match([{"type": "A", "ts": 1}], queries)
    error = caught.value
    assert (error.code, error.text) == ("KL420", queries[1])
    assert error.column == 9
    assert "C → B → C" in error.message
    assert "must read events alone" in str(error.hint)


# On a stream ---------------------------------------------------------------------------------------------------------

UNBOUNDED = [
    ("A a ; B b", "B b"),
    ("σ{b.y > 1}(A a ;{a.k = b.k} B b)", "B b"),
    ("μ{ID, a.k = b.k, init b.y ↦ 0}(A a, B b)", "B b"),
    ("A a ;{a.k = b.k AND DUR < 5} B b ;{b.k = c.k} A c", "A c"),
    # Of what is cut, the part itself.
    ("A a ;{a.k = c.k} σ{c.x > 0}(A b ; A c)", "A b ; A c"),
    ("A a ;{a.k = c.k} π{c.k} ∘ σ{c.x > c.x.last}(A c ; A c)", "σ{c.x > c.x.last}(A c ; A c)"),
]
COLUMNS = pa.schema(
    [("type", pa.string()), ("ts", pa.int64()), ("x", pa.int64()), ("y", pa.int64()), ("k", pa.int64())]
)
SCHEMA = kleene.Schema(
    types={"A": {"x": "int", "k": "int"}, "B": {"y": "int", "k": "int"}},
    columns={name: "string" if name == "type" else "int" for name in COLUMNS.names},
)


@pytest.mark.parametrize(("text", "caret"), UNBOUNDED, ids=[text for text, _ in UNBOUNDED])
def test_what_may_wait_for_ever_needs_a_budget(text: str, caret: str) -> None:
    with pytest.raises(UnboundedState) as caught:
        _watch(text)
    error = caught.value
    assert error.span is not None
    assert text[error.span.start : error.span.end] == caret, error.render()
    assert "`… AND DUR <= 100`" in str(error.hint)
    assert error.message.isprintable()
    _watch(text, Settings(budget=Budget(state_bytes=1_000_000)))


def _watch(text: str, settings: Settings | None = None) -> None:
    """Begin with an expression as a stream would: with no events and a watermark."""
    for part in cut(StreamQuery(text).bind(SCHEMA)):
        StreamEngine(part, settings).process(COLUMNS.empty_table(), 1)


@pytest.mark.parametrize(
    "text",
    [
        "σ{x > 1}(A)",
        "A a ; A b",
        "A a ;{a.k = b.k AND DUR <= 5} B b",
        "μ{ID, a.k = b.k AND DUR <= 5, init b.y ↦ 0}(A a, B b)",
        "σ{DUR <= 5}(A a ;{a.k = b.k} B b)",
    ],
)
def test_what_ends_needs_none(text: str) -> None:
    _watch(text)
