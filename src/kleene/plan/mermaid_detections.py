"""The operators of a query in EQL as a Mermaid flowchart: detections flow from the events up; dotted, exceptions."""

from __future__ import annotations

from collections.abc import Iterator

from kleene.algebra.detections import (
    Detection,
    DetectionFilter,
    DetectionSource,
    Iteration,
    NextDetection,
    Unless,
    operands,
    said,
)
from kleene.algebra.eql_explaining import expiry_text, print_detection
from kleene.algebra.eql_printing import print_conjuncts
from kleene.plan.detections import DetectionPlan, is_read_with_source, operator_nodes
from kleene.plan.explain import REFERENCE
from kleene.plan.explain_detections import waiting_text
from kleene.plan.mermaid import arrow, label


def detections_mermaid(plan: DetectionPlan) -> str:
    """A flowchart that Mermaid draws."""
    lines = ["flowchart LR"]
    if plan.why_on_reference is not None:
        lines.append(f"    events([{label(['events'])}]) --> reference[{label([REFERENCE, plan.why_on_reference])}]")
        return "\n".join(lines) + "\n"
    return "\n".join([*lines, *(f"    {line}" for line in _operators(plan))]) + "\n"


def _operators(plan: DetectionPlan) -> Iterator[str]:
    names = {node: f"o{number}" for number, node in enumerate(operator_nodes(plan.query.root), 1)}
    for node, name in names.items():
        texts = label(list(_texts(plan, node)))
        is_source = isinstance(node, DetectionSource) or is_read_with_source(node)
        yield f"{name}([{texts}])" if is_source else f"{name}[{texts}]"
    yield f"result(({label(['result'])}))"
    for node, name in names.items():
        for place, operand in enumerate(operands(node)):
            if operand not in names:
                continue
            excepts = isinstance(node, Unless) and place == 1
            yield arrow(names[operand], name, _edge(plan, node, place), "-.->" if excepts else "-->")
    yield arrow(names[plan.query.root], "result", [])


def _texts(plan: DetectionPlan, node: Detection) -> Iterator[str]:
    clock = plan.query.schema.clock
    match node:
        case DetectionSource():
            yield said(node)
        case DetectionFilter(operand, condition):
            yield said(operand) if is_read_with_source(node) else "filter"
            yield from print_conjuncts(condition, clock)
        case NextDetection() | Iteration():
            yield print_detection(node, clock)
            yield waiting_text(plan, node)
            yield from print_conjuncts((*node.first_of, *node.condition), clock)
            yield from (f"until {expiry_text(each, plan.query)}" for each in node.expiry)
        case Unless(condition=condition):
            yield print_detection(node, clock)
            yield from print_conjuncts(condition, clock)
        case _:
            yield print_detection(node, clock)


def _edge(plan: DetectionPlan, node: Detection, place: int) -> list[str]:
    if isinstance(node, NextDetection):
        return ["waits"] if place == 0 else ["next"]
    return ["unless"] if isinstance(node, Unless) and place == 1 else []
