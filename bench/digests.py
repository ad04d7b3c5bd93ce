"""Answers are the same before they are timed: ids and their order as other plans and the reference give them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from bench.running import ALL_RULES, found, found_with
from kleene.plan.settings import Settings
from kleene.testing import reference_match

# A plan without keys: every event of a place is in one stack, and equality is tested pair by pair. A window and tests
# during construction are what makes it end.
WITHOUT_KEYS = Settings(without=ALL_RULES - {"push_window", "push_to_construction"}, threads=1)
WITHOUT_RULES = Settings(without=ALL_RULES, threads=1)
# As many events as the reference evaluator takes about a second for.
REFERENCE_EVENTS = 1_500


class AnswersDiffer(SystemExit):
    """Two runs of the same query over the same events gave different rows: no figure of this run means anything."""

    @classmethod
    def between(cls, name: str, digests: Mapping[str, str]) -> AnswersDiffer:
        return cls(f"{name}: answers differ: " + ", ".join(f"{side} {digest}" for side, digest in digests.items()))


def digest(ids: pa.ChunkedArray) -> str:
    """Of ids in their order, however they are cut into chunks."""
    whole = hashlib.sha256()
    for chunk in ids.chunks:
        lines = pc.binary_join(pa.ListArray.from_arrays([0, len(chunk)], chunk), "\n")
        whole.update(lines[0].as_buffer())
        whole.update(b"\n" if len(chunk) else b"")
    return whole.hexdigest()[:16]


def agreed(name: str, table: pa.Table, text: str, reference_events: int = REFERENCE_EVENTS) -> str:
    """The digest of all matches; an error where plans, cores or the reference evaluator disagree.

    The whole stream is matched by one core, by all cores, and by a plan without keys; its beginning by a plan without
    any rule and by the reference evaluator, too.
    """
    one, every = found(table, text), found(table, text, threads=None)
    if not one.equals(every, check_metadata=True):
        raise AnswersDiffer.between(f"{name}, bytes", {"one core": "", "all cores": ""})
    del every
    digests = {"one core": digest(one["match_id"])}
    del one
    digests["a plan without keys"] = digest(found_with(table, text, WITHOUT_KEYS)["match_id"])
    _same(name, digests)
    beginning = table.slice(0, reference_events)
    begun = {
        "ours": digest(found(beginning, text)["match_id"]),
        "a plan without rules": digest(found_with(beginning, text, WITHOUT_RULES)["match_id"]),
        "the reference": digest(pa.chunked_array([reference_match(beginning, text).ids], pa.string())),
    }
    _same(f"{name}, {reference_events:,} events", begun)
    return digests["one core"]


def _same(name: str, digests: Mapping[str, str]) -> None:
    if len(set(digests.values())) > 1:
        raise AnswersDiffer.between(name, digests)
