"""Equalities on an edge of an automaton that find the runs which an event can continue.

begin c     c.src = a.dst            what a run has of a, and what the event has
take b[i]   b[i].src = b[i-1].dst    a run is filed anew with each event that it takes
begin c     c.x + a.x = b.y          none: one value is of the run and of the event
"""

from __future__ import annotations

from kleene.pattern.expressions import Attribute, Clause, Reference, Value, Which, equated, references

_OWN = {True: frozenset({Which.CURRENT}), False: frozenset({Which.SINGLE, Which.FIRST})}


def of_run_and_event(clause: Clause, variable: str, *, taking: bool) -> tuple[Value, Value] | None:
    """The value of the run and that of the event that a clause equates; None: it does not equate two such values.

    variable   whose state the edge takes an event of, or begins
    """

    def is_own(reference: Reference) -> bool:
        own = isinstance(reference, Attribute) and reference.variable == variable
        return own and isinstance(reference, Attribute) and reference.which in _OWN[taking]

    sides = equated(clause) or ()
    of_event = [side for side in sides if references(side) and all(map(is_own, references(side)))]
    of_run = [side for side in sides if references(side) and not any(map(is_own, references(side)))]
    return (of_run[0], of_event[0]) if len(of_run) == len(of_event) == 1 else None
