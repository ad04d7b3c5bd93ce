"""The equalities by which an automaton finds runs, as kernels read them: a program for each side, and its kind."""

from __future__ import annotations

import numpy as np

from kleene.codegen.expression import compile_clauses
from kleene.codegen.value import compile_value
from kleene.codegen.value_kinds import ValueKind
from kleene.engine.executors.equal_values import Measure, common_measure
from kleene.engine.executors.programs import depth_of, joined
from kleene.engine.intake.strings import StringPool
from kleene.kernels.runs import AS_REAL, LANES, REAL, WHOLE, Lookups
from kleene.pattern.expressions import Clause, Value
from kleene.pattern.types import ValueType
from kleene.plan.layout import Layout
from kleene.plan.physical import AutomatonPlan
from kleene.plan.program import NotCompilable, Program
from kleene.plan.run_lookups import of_run_and_event

# So many runs of a partition are offered every event: filing them would cost more than it saves.
_FEW = 64
_NEVER = 1 << 62


def lookups_of(plan: AutomatonPlan, layout: Layout, strings: StringPool) -> tuple[Lookups, int]:
    """The look-ups of a plan, and how deep a stack their values need.

    An equality of columns whose values no integers stand for is tested, not looked up.
    """
    first, programs, kinds = [0], list[Program](), list[tuple[int, int]]()
    for number in range(len(plan.states)):
        for lane in range(LANES):
            for one, other in _equalities(plan, number, lane):
                made = _compiled((one, other), layout)
                if made is not None:
                    programs += made[0]
                    kinds += made[1]
            first.append(len(programs) // 2)
    lookups = Lookups(
        first=np.array(first, np.int64),
        values=joined(programs or [compile_clauses((), layout)], strings),
        kinds=np.array(kinds, np.int64).reshape(len(kinds), 2),
        few=_FEW if programs else _NEVER,
        any=bool(programs),
    )
    return lookups, depth_of(programs)


def _equalities(plan: AutomatonPlan, state: int, lane: int) -> list[tuple[Value, Value]]:
    """What the edges of a run at a state compare: of the state itself, or of the next one."""
    target = state + lane
    if target == len(plan.states):
        return []
    name, taking = plan.states[target].component.variable, not lane
    clauses: tuple[Clause, ...] = (plan.states[target].take if taking else plan.states[target].begin).equalities
    return [sides for clause in clauses if (sides := of_run_and_event(clause, name, taking=taking)) is not None]


def _compiled(sides: tuple[Value, Value], layout: Layout) -> tuple[list[Program], list[tuple[int, int]]] | None:
    try:
        made = [compile_value(side, layout) for side in sides]
    except NotCompilable:
        return None
    measure = common_measure(*(kind for _, kind in made))
    if measure is None:
        return None
    return [program for program, _ in made], [_kind(kind, measure) for _, kind in made]


def _kind(kind: ValueKind, measure: Measure) -> tuple[int, int]:
    if kind.type is ValueType.FLOAT:
        return REAL, 1
    return (AS_REAL, 1) if measure.as_real else (WHOLE, kind.step // measure.step)
