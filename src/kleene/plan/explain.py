"""A physical plan for people: which executor runs each alternative, what is tested where, and what that costs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from kleene.pattern.explaining import aligned
from kleene.pattern.printing import print_alternative
from kleene.plan.costs import Costed, Measured
from kleene.plan.explain_lines import AUTOMATON, STACKS, Row, line_rows
from kleene.plan.explain_trees import amount, print_tree, tree_rows
from kleene.plan.physical import Plan, ReferencePlan, SequencePlan
from kleene.plan.trees import Alternative, TreePlan

REFERENCE = "reference evaluator, which is slow"


def plan_text(
    plan: Plan,
    known: Sequence[str] = (),
    idle: Collection[str] = (),
    measured: Sequence[Measured | None] | None = None,
    counted: Sequence[Sequence[Row]] = (),
) -> list[str]:
    """The plan, line by line.

    known      the rules of the optimiser for such a plan; those that neither it nor `idle` names were off
    idle       rules that were on and changed nothing
    measured   the counts of each alternative, where it ran
    counted    rows of further counts to show below each alternative
    """
    lines: list[str] = []
    for number, alternative in enumerate(plan.alternatives):
        costed = plan.costs[number] if plan.costs else None
        measurement = measured[number] if measured else None
        if lines:
            lines.append("")
        if len(plan.alternatives) > 1:
            lines.append(f"alternative {number + 1} of {len(plan.alternatives)}: {pattern_text(plan, number)}")
        counts = counted[number] if counted else ()
        lines += aligned(
            [*_alternative(alternative, plan, costed, measurement), *_costs(plan, costed, measurement), *counts]
        )
    if plan.why_on_reference is not None:
        return lines
    return [*lines, "", *aligned(_rules(plan, known, idle))]


def pattern_text(plan: Plan, number: int) -> str:
    """What one alternative of a plan matches. A tree has its own pattern: its disjunctions are no alternatives."""
    alternative = plan.alternatives[number]
    return print_alternative(
        alternative.pattern if isinstance(alternative, TreePlan) else plan.query.alternatives[number]
    )


def _alternative(
    alternative: Alternative, plan: Plan, costed: Costed | None, measured: Measured | None
) -> Iterator[Row]:
    match alternative:
        case TreePlan():
            return tree_rows(alternative, plan.query, costed, measured)
        case ReferencePlan(reason):
            return iter([("executor", f"{REFERENCE}: {reason}")])
    return line_rows(alternative, plan.query)


def _costs(plan: Plan, costed: Costed | None, measured: Measured | None) -> Iterator[Row]:
    unit = "steps a window" if plan.query.window is not None else "steps in all"
    if costed is not None:
        text = f"{amount(costed.total)} {unit}"
        if costed.runner_up is not None and costed.runner_up_cost is not None:
            text += f"; next best: {way(costed.runner_up)} at {amount(costed.runner_up_cost)}"
        yield "cost", text
    if measured is not None:
        text = "in all events"
        if plan.query.window is not None:
            text = f"in {amount(measured.windows)} {'window' if measured.windows == 1 else 'windows'} of events"
        if measured.rounds:
            text += f", {measured.rounds:,} {'round' if measured.rounds == 1 else 'rounds'} of assembly"
        changes = "once" if measured.changes == 1 else f"{measured.changes:,} times"
        yield "measured", f"{text}; the plan was changed {changes}" if measured.changes else text


def way(plan: Alternative) -> str:
    """One way to run an alternative, in short."""
    match plan:
        case TreePlan():
            return print_tree(plan.root)
        case ReferencePlan():
            return REFERENCE
    return STACKS if isinstance(plan, SequencePlan) else AUTOMATON


def _rules(plan: Plan, known: Sequence[str], idle: Collection[str]) -> Iterator[Row]:
    yield "rules", ", ".join(name for name in plan.rules if name not in idle) or "none"
    if idle:
        yield "no effect", ", ".join(name for name in dict.fromkeys((*plan.rules, *known)) if name in idle)
    off = [name for name in known if name not in plan.rules and name not in idle]
    if off:
        yield "switched off", ", ".join(off)
