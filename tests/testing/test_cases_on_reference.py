"""Every case file, on the reference evaluator; queries of streams by the definitions and by Algorithm 1."""

from __future__ import annotations

import pytest
from tests.case_files import CASES

from kleene.algebra.nodes import Node
from kleene.algebra.query import BoundStreamQuery
from kleene.reference import stream_results
from kleene.reference.stream_values import StreamEvent
from kleene.reference.timeline import ReferenceTimeline
from kleene.testing.case_check import check_case
from kleene.testing.case_reference import run_on_reference
from kleene.testing.cases import Case
from kleene.testing.reference_streams import stream_events


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.place} {case.name}")
def test_case(case: Case) -> None:
    check_case(case, run_on_reference)


STREAMS = [case for case in CASES if case.of_streams and case.error is None]


class ByAutomata:
    """Stands in for the evaluator of the definitions."""

    def __init__(self, timeline: ReferenceTimeline) -> None:
        self.timeline = timeline

    def evaluate(self, root: Node) -> list[StreamEvent]:
        query = BoundStreamQuery("", self.timeline.schema, root, None, b"")
        return stream_events(query, self.timeline, by_automaton=True)


@pytest.mark.parametrize("case", STREAMS, ids=lambda case: f"{case.place} {case.name}")
def test_case_by_algorithm_1(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_results, "StreamEvaluator", ByAutomata)
    check_case(case, run_on_reference)


def test_there_are_enough_cases() -> None:
    print(f"{len(CASES)} cases on the reference evaluator")
    assert len(CASES) >= 120
    assert all(case.why or case.error for case in CASES), "every case says why"
