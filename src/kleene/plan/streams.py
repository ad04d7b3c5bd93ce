"""The plan of a linear-plus expression: an event automaton (CESAR §3.2, Fig. 3–6) as plain data.

An instance waits at a state, with values for the attributes of that state. Conditions and values on edges speak of two
things: an attribute that the instance holds is `Which.OVERWRITTEN`, since the newest event may overwrite it, and one of
the newest event itself, in the columns of its source, is `Which.SINGLE`.
"""

from __future__ import annotations

from dataclasses import dataclass

from kleene.algebra.nodes import AttributeName, StreamSchema, StreamSource
from kleene.algebra.query import BoundStreamQuery
from kleene.pattern.expressions import Attribute, Clause, Value

# Where edges of primitive events come from, and where those of results go.
START = -1
FINAL = -1


@dataclass(frozen=True, slots=True)
class InputFormula:
    """θ1 of an edge: which events of the input it takes."""

    source: StreamSource
    condition: tuple[Clause, ...] = ()


@dataclass(frozen=True, slots=True)
class WaitingState:
    """A state, with its filter edge: an instance stays as long as no event satisfies the formula and the condition.

    schema      the attributes of its instances
    condition   θ2 of the filter edge
    keys        equalities of the condition, of an attribute of the instance with one of the event: an event looks only
                at instances with its own values
    most        how many steps of time a composite event may last and still be of use; None: any number
    stays       whether an instance goes on waiting where an event has served it (skip till any match)
    """

    schema: StreamSchema
    formula: int
    condition: tuple[Clause, ...] = ()
    keys: tuple[tuple[AttributeName, Attribute], ...] = ()
    most: int | None = None
    stays: bool = False


@dataclass(frozen=True, slots=True)
class StreamEdge:
    """A forward or a rebind edge (∃): what an event makes of an instance, or by itself.

    source, target   states, or START and FINAL; a rebind edge leads back to its own state
    condition        θ2 besides that of the filter edge at its source
    values           those of the attributes of its target, in their order
    """

    source: int
    target: int
    formula: int
    condition: tuple[Clause, ...]
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class EventAutomaton:
    """States and edges whose only cycles are self-loops: edges lead to later states, to their own, or to FINAL.

    schema   the attributes of its results
    """

    formulas: tuple[InputFormula, ...]
    states: tuple[WaitingState, ...]
    edges: tuple[StreamEdge, ...]
    schema: StreamSchema

    def attributes(self, state: int) -> StreamSchema:
        """The attributes of the instances at a state, or of results."""
        return self.schema if state == FINAL else self.states[state].schema

    def leaving(self, state: int) -> tuple[StreamEdge, ...]:
        """The forward and rebind edges of a state."""
        return tuple(edge for edge in self.edges if edge.source == state)


@dataclass(frozen=True, slots=True)
class StreamPlan(EventAutomaton):
    """The automaton of a query of the stream algebra."""

    query: BoundStreamQuery
    # Why the reference evaluator runs the query; None where the automaton does.
    why_on_reference: str | None = None

    @property
    def alternatives(self) -> tuple[StreamPlan, ...]:
        """One automaton runs it, or none."""
        return () if self.why_on_reference is not None else (self,)

    @property
    def longest(self) -> int | None:
        """How many steps of time any instance can be of use; None: any number."""
        most = [state.most for state in self.states]
        known = [each for each in most if each is not None]
        return max(known, default=0) if len(known) == len(most) else None
