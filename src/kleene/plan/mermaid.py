"""A physical plan as a Mermaid flowchart: places, states or joins, and what is tested there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kleene.pattern.expressions import Clause
from kleene.pattern.nodes import ComponentKind
from kleene.pattern.printing import print_clause
from kleene.plan.explain import REFERENCE, pattern_text
from kleene.plan.explain_lines import AUTOMATON, STACKS, classes_text, leaving, variables_of
from kleene.plan.explain_trees import TREE, node_tests, node_text, nseq_text, site_tests
from kleene.plan.physical import AutomatonPlan, Plan, ReferencePlan, SequencePlan
from kleene.plan.trees import Alternative, JoinNode, LeafNode, Node, TreePlan, children

# Longer conditions are cut, and there are at most so many on an edge.
_LONGEST = 48
_MOST_LINES = 5
# What a label may hold as it is; everything else is written as a code, since Mermaid reads it as syntax or as HTML.
_SAFE = frozenset(" .,:=+*/!_-§–…≤≥")


def plan_mermaid(plan: Plan) -> str:
    """A flowchart that Mermaid draws, one group an alternative."""
    lines = ["flowchart LR"]
    several = len(plan.alternatives) > 1
    for number, alternative in enumerate(plan.alternatives):
        if several:
            lines.append(f"    subgraph g{number}[{label([pattern_text(plan, number)])}]")
        lines += [f"    {line}" for line in _alternative(alternative, f"p{number}_")]
        if several:
            lines.append("    end")
    return "\n".join(lines) + "\n"


def _alternative(plan: Alternative, prefix: str) -> Iterator[str]:
    match plan:
        case SequencePlan():
            return _stacks(plan, prefix)
        case AutomatonPlan():
            return _automaton(plan, prefix)
        case TreePlan():
            return _tree(plan, prefix)
        case ReferencePlan(reason):
            return iter([f"events([{label(['events'])}]) --> reference[{label([REFERENCE, reason])}]"])


def _stacks(plan: SequencePlan, prefix: str) -> Iterator[str]:
    """Forwards the scan, each place with its mask; dotted, construction back from the last place with its tests."""
    last = len(plan.scans) - 1
    yield _start(prefix, STACKS, plan.key)
    for place, scan in enumerate(plan.scans):
        yield f"{prefix}{place}[{label([f'stack {scan.component.variable}', classes_text(scan.component)])}]"
    for place, scan in enumerate(plan.scans):
        before = f"{prefix}{place - 1}" if place else f"{prefix}start"
        absent = [f"no {absence.scan.component.variable}" for absence in plan.absences if absence.after == place - 1]
        yield arrow(before, f"{prefix}{place}", [*absent, *printed(scan.mask)])
    for place in range(last - 1, -1, -1):
        yield arrow(f"{prefix}{place + 1}", f"{prefix}{place}", printed(plan.during[place]), "-.->")
    at_end = [f"no {absence.scan.component.variable}" for absence in plan.absences if absence.after == last]
    alone = printed(plan.during[last]) if plan.during else []
    yield f"{prefix}match(({label(['match'])}))"
    yield arrow(f"{prefix}{last}", f"{prefix}match", [*alone, *printed(plan.after), *at_end])


def _automaton(plan: AutomatonPlan, prefix: str) -> Iterator[str]:
    names = variables_of(plan)
    last = len(names) - 1
    yield _start(prefix, AUTOMATON, plan.key)
    for number, state in enumerate(plan.states):
        brackets = "[]" if state.component.kind is ComponentKind.KLEENE else ""
        yield f"{prefix}{number}([{label([names[number] + brackets, classes_text(state.component)])}])"
    for number, state in enumerate(plan.states):
        before = f"{prefix}{number - 1}" if number else f"{prefix}start"
        left = leaving(plan.states[number - 1]) if number else []
        absent = [f"no {absence.scan.component.variable}" for absence in plan.absences if absence.after == number - 1]
        begin = printed((*state.begin.mask, *state.begin.tests))
        yield arrow(before, f"{prefix}{number}", [*(f"leave: {text}" for text in left), *absent, *begin])
        if state.component.kind is ComponentKind.KLEENE:
            take = printed((*state.take.mask, *state.take.tests))
            yield arrow(f"{prefix}{number}", f"{prefix}{number}", ["take", *take])
    at_end = [f"no {absence.scan.component.variable}" for absence in plan.absences if absence.after == last]
    yield f"{prefix}match(({label(['match'])}))"
    yield arrow(f"{prefix}{last}", f"{prefix}match", [*leaving(plan.states[-1]), *at_end])


def _tree(plan: TreePlan, prefix: str) -> Iterator[str]:
    """Events flow into the leaves, records from them to the root; dotted, what NSEQ looks into."""
    yield _start(prefix, TREE, plan.key)
    yield from _below(plan.root, f"{prefix}0", prefix, plan.key)
    yield f"{prefix}match(({label(['match'])}))"
    yield arrow(f"{prefix}0", f"{prefix}match", printed(plan.after))


def _below(node: Node, name: str, prefix: str, key: tuple[str, ...]) -> Iterator[str]:
    """A node and all below it; the parts of `p0_1` are `p0_1_0`, `p0_1_1`, …"""
    if isinstance(node, LeafNode):
        yield f"{name}[{label([node.scan.component.variable, classes_text(node.scan.component)])}]"
        yield arrow(f"{prefix}start", name, printed((*node.scan.mask, *node.tests)))
        return
    yield f"{name}[{label([node_text(node), *node_tests(node, key)])}]"
    if isinstance(node, JoinNode):
        for number, (side, absence) in enumerate(node.pushed):
            scan = absence.scan
            yield f"{name}_n{number}[{label([f'no {scan.component.variable}', classes_text(scan.component)])}]"
            yield arrow(f"{prefix}start", f"{name}_n{number}", printed(scan.mask))
            tests = [nseq_text(side, absence), *site_tests(absence)]
            yield arrow(f"{name}_n{number}", name, tests, "-.->")
    for number, child in enumerate(children(node)):
        yield from _below(child, f"{name}_{number}", prefix, key)
        yield arrow(f"{name}_{number}", name, [])


def _start(prefix: str, executor: str, key: tuple[str, ...]) -> str:
    partition = [f"by {', '.join(key)}"] if key else []
    return f"{prefix}start([{label([executor, *partition])}])"


def arrow(source: str, target: str, texts: Iterable[str], sign: str = "-->") -> str:
    """An edge with texts on it."""
    shown = list(texts)
    return f"{source} {sign}|{label(shown)}| {target}" if shown else f"{source} {sign} {target}"


def printed(clauses: Iterable[Clause]) -> list[str]:
    """Conditions as texts."""
    return [print_clause(clause) for clause in clauses]


def label(texts: Iterable[str]) -> str:
    """A quoted label, one text a line."""
    listed = list(texts)
    if len(listed) > _MOST_LINES:
        listed = [*listed[: _MOST_LINES - 1], f"… {len(listed) - _MOST_LINES + 1} more"]
    return '"' + "<br/>".join(map(_escaped, listed)) + '"'


def _escaped(text: str) -> str:
    short = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return "".join(sign if sign.isalnum() or sign in _SAFE else f"#{ord(sign)};" for sign in " ".join(short.split()))
