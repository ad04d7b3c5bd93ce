"""An automaton plan as arrays: its states, edges and negations as kernels read them, and room for its runs."""

from __future__ import annotations

import numpy as np

from kleene.codegen.expression import compile_clauses
from kleene.engine.executors.computation_state import ComputationState
from kleene.engine.executors.linking import link_aggregates
from kleene.engine.executors.programs import depth_of, joined
from kleene.engine.executors.run_lookups import lookups_of
from kleene.engine.executors.windows import within
from kleene.engine.intake.strings import StringPool
from kleene.kernels import runs as kernel
from kleene.kernels.expression import Stack, room
from kleene.lang.tree import OutputMode, SelectionStrategy
from kleene.pattern.nodes import ComponentKind
from kleene.pattern.query import BoundQuery
from kleene.plan.physical import AutomatonPlan
from kleene.plan.program import AggregationPlan

FIRST_ROOM = 1024


def machine_of(
    query: BoundQuery,
    plan: AutomatonPlan,
    state: ComputationState,
    aggregates: AggregationPlan,
    strings: StringPool,
    *,
    most: int,
    alone: bool,
) -> tuple[kernel.Machine, Stack]:
    """The machine, and room to compute in.

    most    the most runs of a partition
    alone   whether the query has no other alternative
    """
    programs = [
        compile_clauses(tests, state.layout)
        for each in plan.states
        for tests in (each.take.tests, each.proceed, each.begin.tests)
    ]
    programs += [compile_clauses(absence.conditions, state.layout) for absence in plan.absences]
    components = [each.component for each in plan.states]
    # A number of events matters up to the least that is needed, and always where there is a most.
    caps = [
        1 if c.kind is ComponentKind.SINGLE else c.minimum if c.maximum is None else c.maximum + 1 for c in components
    ]
    own = [aggregates.slots.get(c.variable, np.zeros(0, np.int64)) for c in components]
    absent = [slots for name, slots in aggregates.slots.items() if name not in {c.variable for c in components}]
    plain = ~state.keep.any(axis=1) & ~state.keep_groups.any(axis=1) & (np.array(caps) <= 1)
    nothing = np.zeros(0, np.int64)
    lookups, depth = lookups_of(plan, state.layout, strings)
    machine = kernel.Machine(
        kleene=np.array([c.kind is ComponentKind.KLEENE for c in components]),
        minimum=np.array([c.minimum for c in components], np.int64),
        maximum=np.array(
            [-1 if c.maximum is None or c.kind is ComponentKind.SINGLE else c.maximum for c in components]
        ),
        cap=np.array(caps, np.int64),
        first=np.array(state.first, np.int64),
        last=np.array(state.last, np.int64),
        keep=state.keep,
        keep_groups=state.keep_groups,
        plain=plain,
        aggregates=np.cumsum([0, *map(len, own)]).astype(np.int64),
        aggregate_slots=np.concatenate([*own, *absent, nothing]).astype(np.int64),
        aggregation=link_aggregates(aggregates, strings),
        programs=joined(programs, strings),
        within=within(query.window),
        early=plan.window_early,
        contiguous=query.strategy.is_contiguous,
        next_match=query.strategy is SelectionStrategy.SKIP_TILL_NEXT_MATCH,
        merges=plan.merges,
        tallies=_tallies(query, plan),
        prunes=_prunes(query, plan, alone),
        most=most,
        after=np.array([absence.after for absence in plan.absences], np.int64),
        at=np.array([-1 if absence.at is None else absence.at for absence in plan.absences], np.int64),
        keyed=np.array([absence.keyed for absence in plan.absences], np.bool_),
        left=np.array(state.left, np.int64),
        right=np.array(state.right, np.int64),
        lookups=lookups,
    )
    return machine, room(max(depth, depth_of(programs)))


def _tallies(query: BoundQuery, plan: AutomatonPlan) -> bool:
    """Whether runs are counted by first event: a window leaves behind some of the runs that share a node.

    Under skip_till_any_match a node has very many predecessors, and its runs are counted on demand instead.
    """
    any_match = query.strategy is SelectionStrategy.SKIP_TILL_ANY_MATCH
    return plan.merges and query.window is not None and not any_match


def _prunes(query: BoundQuery, plan: AutomatonPlan, alone: bool) -> bool:
    """Whether a match ends all runs of its partition: with NON_OVERLAP, where it is certain at once to be chosen."""
    chosen = query.output is OutputMode.NON_OVERLAP and query.timeouts is None
    return chosen and alone and not plan.has_negated_end and query.schema.start is None


def no_runs(plan: AutomatonPlan, width: int, lookups: kernel.Lookups) -> kernel.Runs:
    """Room for the first runs; `width` is the number of their slots."""
    states, absences = len(plan.states), len(plan.absences)
    lanes = kernel.LANES if lookups.any else 0
    sizes = np.zeros(kernel.SIZES, np.int64)
    # The first node stands for the run that has taken nothing.
    sizes[kernel.NODES] = 1
    return kernel.Runs(
        nodes=np.full((FIRST_ROOM, kernel.FIELDS), -1, np.int32),
        slots=np.full((FIRST_ROOM, width), -1, np.int32),
        total=np.zeros(FIRST_ROOM, np.uint64),
        links=np.empty((FIRST_ROOM, 2), np.int32),
        tally=np.empty((FIRST_ROOM, 3), np.int32),
        tallied=np.empty(FIRST_ROOM, np.uint64),
        top=np.full((1, states), -1, np.int32),
        live=np.zeros(1, np.int64),
        completed=np.empty(FIRST_ROOM, np.int32),
        newest_node=np.full(states, -1, np.int32),
        buckets=np.zeros(64, np.int32),
        stamps=np.full(64, -1, np.int32),
        frontier=np.full((1, 2), -1, np.int64),
        codes=np.empty((FIRST_ROOM, lanes), np.uint64),
        heads=np.full((lanes, 0), -1, np.int32),
        found=np.empty((kernel.FOUND + 1, 0), np.int32),
        limit=np.full(1, lookups.few, np.int64),
        instances=np.empty(0, np.int32),
        below=np.empty(0, np.int32),
        newest_instance=np.full((1, absences), -1, np.int32),
        counts=np.zeros((states, kernel.COUNTERS), np.int64),
        sizes=sizes,
    )
