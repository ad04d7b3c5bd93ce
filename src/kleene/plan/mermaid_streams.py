"""Event automata as a Mermaid flowchart, drawn as CESAR draws them: filter edges are loops, and so are rebind edges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kleene.plan.explain_streams import shown, source_text
from kleene.plan.mermaid import arrow, label, printed
from kleene.plan.streams import FINAL, START, StreamEdge, StreamPlan


def streams_mermaid(plans: Sequence[StreamPlan]) -> str:
    """A flowchart with one group for each automaton, those of parts first."""
    names = [plan.query.name for plan in plans[:-1]]
    lines = ["flowchart LR"]
    for number, plan in enumerate(plans):
        inner = list(_automaton(plan, f"a{number}_", names))
        if len(plans) == 1:
            lines += [f"    {line}" for line in inner]
            continue
        title = f"part {number + 1}" if number < len(names) else "query"
        lines += [f"    subgraph g{number}[{label([title])}]", *(f"        {line}" for line in inner), "    end"]
    return "\n".join(lines) + "\n"


def _automaton(plan: StreamPlan, prefix: str, names: Sequence[str]) -> Iterator[str]:
    yield f"{prefix}start([{label(['start'])}])"
    for number, state in enumerate(plan.states):
        source = source_text(plan.formulas[state.formula].source, names)
        yield f"{prefix}{number}(({label([f'state {number + 1}', f'waits for {source}'])}))"
    yield f"{prefix}final([{label(['result'])}])"
    for number, state in enumerate(plan.states):
        formula = plan.formulas[state.formula]
        condition = printed(shown(formula, clause) for clause in (*formula.condition, *state.condition))
        loop = f"{prefix}{number}"
        yield arrow(loop, loop, ["stays unless", *condition] if condition else ["stays until the next"], "-.->")
    for edge in plan.edges:
        source = f"{prefix}{'start' if edge.source == START else edge.source}"
        target = f"{prefix}{'final' if edge.target == FINAL else edge.target}"
        yield arrow(source, target, _label(plan, edge, names))


def _label(plan: StreamPlan, edge: StreamEdge, names: Sequence[str]) -> list[str]:
    formula = plan.formulas[edge.formula]
    return [
        source_text(formula.source, names),
        *printed(shown(formula, each) for each in (*formula.condition, *edge.condition)),
    ]
