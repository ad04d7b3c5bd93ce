"""Linear-plus expressions (CESAR §3.2, Definition 1): what one automaton without cycles but self-loops recognises."""

from __future__ import annotations

from kleene.algebra.nodes import Fold, Next, Node, StreamSource, StreamUnion, chain


def is_linear_plus(node: Node) -> bool:
    """Whether everything that stands on the right of `;` and μ is a base stream below unary operations."""
    _, inner = chain(node)
    match inner:
        case StreamSource():
            return True
        case StreamUnion(parts):
            return all(map(is_linear_plus, parts))
        case Next(left=left, right=right) | Fold(left=left, right=right):
            return is_linear_plus(left) and isinstance(chain(right)[1], StreamSource)
    return False
