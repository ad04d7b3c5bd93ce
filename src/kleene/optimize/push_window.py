"""The window into scan and construction (SASE §4.3): expired instances are neither kept nor visited."""

from __future__ import annotations

from dataclasses import replace

from kleene.plan.physical import SequencePlan


def push_window(plan: SequencePlan) -> SequencePlan:
    return replace(plan, window_in_scan=True, window_in_construction=True)
