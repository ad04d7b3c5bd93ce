"""Whether the instances of an automaton are bounded on a stream that never ends (semantics §4 CESAR, Ends)."""

from __future__ import annotations

from kleene.plan.streams import EventAutomaton, WaitingState


def unbounded_state(plan: EventAutomaton) -> WaitingState | None:
    """A state at which instances could gather for ever; None: there is none.

    At a state that takes any next event, an instance is gone with the next event of the kind that makes instances
    there: those of one step wait at most, or as many as events overlap. Anywhere else only time helps.
    """
    for number, state in enumerate(plan.states):
        if state.most is None and not _takes_any(plan, number, state):
            return state
    return None


def _takes_any(plan: EventAutomaton, number: int, state: WaitingState) -> bool:
    formula = plan.formulas[state.formula]
    event_class = formula.source.event_class
    if state.condition or formula.condition or event_class.predicate:
        return False
    makers = (edge for edge in plan.edges if edge.target == number)
    types = {name for edge in makers for name in plan.formulas[edge.formula].source.event_class.types}
    return types <= set(event_class.types)
