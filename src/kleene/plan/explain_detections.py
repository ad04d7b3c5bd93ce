"""The plan of a query in EQL for people: an operator a line, how what waits there is found, and when it is gone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kleene.algebra.detections import (
    Delay,
    Detection,
    DetectionFilter,
    DetectionSource,
    DetectionUnion,
    Iteration,
    NextDetection,
    Unless,
    operands,
    said,
)
from kleene.algebra.eql_explaining import exception_named, expiry_text, failing_text
from kleene.algebra.eql_printing import print_conjuncts, print_steps
from kleene.pattern.expressions import Clause
from kleene.pattern.printing import print_value
from kleene.plan.detections import DetectionPlan, KeyPart, is_read_with_source, operator_nodes

OPERATORS = "operators (NEXT §3.4): what was detected waits for the first that comes next"

Row = tuple[str, str]


def detection_rows(plan: DetectionPlan, counted: Mapping[Detection, str] | None = None) -> Iterator[Row]:
    """The operators of a plan, those below before those above.

    counted   what each counted, where it ran
    """
    nodes = operator_nodes(plan.query.root)
    numbers = {node: number for number, node in enumerate(nodes, 1)}
    yield "executor", OPERATORS
    for node, number in numbers.items():
        yield str(number), operator_text(plan, node, numbers)
        for name, text in _details(plan, node):
            yield f"  {name}", text
        if counted is not None:
            yield "  counted", counted[node]


def operator_text(plan: DetectionPlan, node: Detection, numbers: Mapping[Detection, int]) -> str:
    """What an operator does with those that it reads, by their numbers."""
    read = [str(numbers[each]) for each in operands(node) if each in numbers]
    match node:
        case DetectionSource():
            return f"events of {said(node)}"
        case DetectionFilter(operand) if is_read_with_source(node):
            return f"events of {said(operand)} where {_joined(plan, node.condition)}"
        case DetectionFilter():
            return f"those of {read[0]} where {_joined(plan, node.condition)}"
        case DetectionUnion():
            return f"all of {', '.join(read)}"
        case Delay(_, steps):
            return f"{read[0]} @ {print_steps(steps, plan.query.schema.clock)}: each is held until then"
        case NextDetection():
            return f"{read[0]} ; {read[1]}"
        case Iteration():
            return f"{read[0]}+"
        case Unless():
            return f"{read[0]} \\ {read[1]}"


def key_text(keys: Sequence[KeyPart]) -> str:
    return ", ".join(f"{print_value(part.left)} (= {print_value(part.right)})" for part in keys)


def waiting_text(plan: DetectionPlan, node: NextDetection | Iteration) -> str:
    """Which of those that wait are looked at."""
    if isinstance(node, Iteration):
        return "one queue of runs" if not node.first_of else "one list of runs, all of which are looked at"
    known = plan.next_plan(node)
    if known.keys:
        place = f"a queue for each {key_text(known.keys)}"
        return f"{place}, all of which is looked at" if known.residual else place
    return "one list, all of which is looked at" if known.residual else "one queue, which the next one empties"


def _details(plan: DetectionPlan, node: Detection) -> Iterator[Row]:
    match node:
        case NextDetection():
            yield "waits", waiting_text(plan, node)
            yield from _listed(plan, "takes", plan.next_plan(node).residual)
            yield from _listed(plan, "gives", node.condition)
            yield from _expiries(plan, node)
            for failing, fields in zip(node.failing, plan.next_plan(node).failing, strict=True):
                found = "found by the key" if fields is not None else "tested with all that wait"
                text = failing_text(failing, plan.query.schema.clock)
                name = exception_named(failing.exception, plan.query)
                yield f"∅ {name}", text if text == "goes on" else f"{text}: {found}"
        case Iteration():
            yield "waits", waiting_text(plan, node)
            yield from _listed(plan, "takes", node.first_of)
            yield from _listed(plan, "gives", node.condition)
            yield from _expiries(plan, node)
            for number in node.failing:
                yield f"∅ {exception_named(number, plan.query)}", "ends all runs"
        case Unless():
            yield "holds", _held(plan, node)
            yield from _listed(plan, "tests", node.condition)


def _held(plan: DetectionPlan, node: Unless) -> str:
    if node.deferred:
        return "nothing: ∅ goes to where runs wait"
    if not node.condition:
        return "the last exception alone"
    longest = plan.unless_plan(node).longest
    kept = "all exceptions"
    if longest == 0:
        kept = "exceptions of one moment"
    elif longest is not None:
        kept = f"exceptions for {print_steps(longest, plan.query.schema.clock)}, as long as a detection may last"
    return f"{kept}; each in the time of a detection is tested with it"


def _expiries(plan: DetectionPlan, node: NextDetection | Iteration) -> Iterator[Row]:
    if not node.expiry:
        yield "until", "any time"
    for number, expiry in enumerate(node.expiry):
        yield ("" if number else "until"), expiry_text(expiry, plan.query)


def _listed(plan: DetectionPlan, name: str, clauses: Sequence[Clause]) -> Iterator[Row]:
    for number, text in enumerate(print_conjuncts(clauses, plan.query.schema.clock)):
        yield ("" if number else name), text


def _joined(plan: DetectionPlan, clauses: Sequence[Clause]) -> str:
    return " AND ".join(print_conjuncts(clauses, plan.query.schema.clock))
