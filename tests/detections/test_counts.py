"""What the operators of EQL count: of those that wait, each comes to one end."""

from __future__ import annotations

from random import Random

import pytest
from tests.detections.agreement import pairs_of
from tests.soaking import SOAKING

from kleene.algebra.detections import Delay, DetectionUnion, NextDetection, Unless, operands
from kleene.analysis import detection_run
from kleene.engine.detections import network
from kleene.plan.program import NotCompilable
from kleene.plan.settings import Settings
from kleene.testing.generators.detections import STRATA


@pytest.mark.slow
@pytest.mark.parametrize("stratum", STRATA)
def test_all_that_came_is_accounted_for(stratum: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Events that nothing refers to are dropped at once, and no count with them.
    monkeypatch.setattr(network, "_WORTH_IT", 1)
    waited = 0
    for seed in range(900, 912 if SOAKING else 906):
        for pair in pairs_of(stratum, seed):
            try:
                engine = detection_run(pair.bound, pair.table, Settings(), Random(seed).choice([1, 3, 20]))
            except NotCompilable:
                continue
            assert engine.statistics.matches == len(pair.result.matches)
            assert engine.network is not None
            counts = engine.network.counts
            # Detections of the same events are one match.
            assert counts[pair.bound.root].given >= len(pair.result.matches)
            for node, own in counts.items():
                below = [counts[each].given for each in operands(node) if each in counts]
                if isinstance(node, NextDetection):
                    ends = own.served + own.failed + own.ended + own.unkeyed + own.expired + own.left
                    assert own.came == below[0] == ends, (pair.case, node)
                    waited += own.came
                elif isinstance(node, Unless):
                    assert own.given == own.came - own.ended
                elif isinstance(node, Delay | DetectionUnion):
                    assert own.given == own.came == sum(below)
    assert waited > (50 if SOAKING else 25) or stratum not in ("chain", "exception")
