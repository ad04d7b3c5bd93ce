"""Random queries in two spellings: with a key in brackets, and with the equalities that the brackets stand for."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np
import pyarrow as pa

_ANY, _NEXT = "skip_till_any_match", "skip_till_next_match"
_CLASSES = ("A", "B", "C", "D")
_KEYS = (("k",), ("k",), ("k",), ("k", "s"))


@dataclass(frozen=True, slots=True)
class _SpelledShape:
    """A pattern; its equalities link `positives` with each other, and each of `others` with one of these."""

    pattern: str
    strategy: str
    # In the order of the text.
    positives: tuple[str, ...]
    others: tuple[str, ...] = ()
    # A Kleene variable, whose events agree among themselves.
    kleene: str | None = None


@dataclass(frozen=True, slots=True)
class SpelledPair:
    brackets: str
    spelled: str


def events(number: int, seed: int) -> pa.Table:
    """Events of four types with keys, of which one in a hundred is NULL."""
    rng = np.random.default_rng(seed)
    keys = rng.integers(0, max(number // 60, 2), number)
    return pa.table(
        {
            "type": rng.choice(_CLASSES, number),
            "ts": np.arange(number) // 2,
            "k": pa.array(keys, mask=rng.random(number) < 0.01),
            "s": pa.array([f"s{key % 3}" for key in keys]),
            "x": rng.integers(0, 100, number),
        }
    )


def drawn_pair(draw: Random, window: int) -> SpelledPair:
    """A query in both spellings."""
    shape = _drawn_shape(draw)
    keys = draw.choice(_KEYS)
    brackets = [f"[{key}]" for key in keys]
    equalities = [clause for key in keys for clause in _spelled(shape, key, draw)]
    more = _more(shape, draw)

    def text(clauses: list[str]) -> str:
        return f"PATTERN {shape.pattern} WHERE {shape.strategy} {{ {' AND '.join(clauses + more)} }} WITHIN {window}"

    return SpelledPair(text(brackets), text(equalities))


def _drawn_shape(draw: Random) -> _SpelledShape:
    names = [each.lower() for each in draw.sample(_CLASSES, draw.randint(2, 4))]
    parts = [f"{name.upper()} {name}" for name in names]
    kind = draw.choice(("line", "line", "negated", "negated", "kleene", "conjunction", "branch", "optional"))
    strategy = draw.choice((_ANY, _ANY, _NEXT))
    match kind:
        case "negated":
            place = draw.randint(1, len(names) - 1) if len(names) > 2 else 1
            negated = next(each for each in "abcd" if each not in names) if len(names) < 4 else names.pop(place)
            parts = [f"{name.upper()} {name}" for name in names]
            parts.insert(min(place, len(parts)), f"!({negated.upper()} {negated})")
            return _SpelledShape(f"SEQ({', '.join(parts)})", strategy, tuple(names), (negated,))
        case "kleene":
            place = draw.randrange(min(len(names), 2))
            parts[place] = f"{names[place].upper()}+ {names[place]}[]"
            shown = tuple(names[:3])
            return _SpelledShape(f"SEQ({', '.join(parts[:3])})", _NEXT, shown, kleene=names[place])
        case "conjunction":
            joined = " & ".join(parts[:2])
            rest = [f"({joined})" if len(parts) > 2 else joined, *parts[2:]]
            return _SpelledShape(" ; ".join(rest), _ANY, tuple(names))
        case "branch" if len(names) > 2:
            pattern = f"{parts[0]} ; ({' | '.join(parts[1:])})"
            return _SpelledShape(pattern, _ANY, tuple(names[:1]), tuple(names[1:]))
        case "optional" if len(names) > 2:
            parts[1] = f"{names[1].upper()}? {names[1]}"
            return _SpelledShape(" ; ".join(parts), _ANY, (names[0], *names[2:]), (names[1],))
        case _:
            return _SpelledShape(f"SEQ({', '.join(parts)})", strategy, tuple(names))


def _spelled(shape: _SpelledShape, key: str, draw: Random) -> list[str]:
    """Equalities that link all variables: a chain, or each with one that comes before it in the text."""
    first = {name: f"{name}[1].{key}" if name == shape.kleene else f"{name}.{key}" for name in shape.positives}
    last = {name: f"{name}[{name}.LEN].{key}" if name == shape.kleene else f"{name}.{key}" for name in shape.positives}
    clauses = []
    if shape.kleene is None and len(shape.positives) > 2 and draw.random() < 0.2:
        clauses.append(" = ".join(first[name] for name in shape.positives))
    else:
        for place in range(1, len(shape.positives)):
            before = draw.choice(shape.positives[:place])
            clauses.append(_equal(first[shape.positives[place]], draw.choice((first, last))[before], draw))
    clauses += [_equal(f"{name}.{key}", first[draw.choice(shape.positives)], draw) for name in shape.others]
    if shape.kleene is not None:
        other = draw.choice((f"{shape.kleene}[1].{key}", f"{shape.kleene}[i-1].{key}"))
        clauses.append(f"{shape.kleene}[i].{key} = {other}")
    draw.shuffle(clauses)
    return clauses


def _equal(one: str, other: str, draw: Random) -> str:
    return f"{one} = {other}" if draw.random() < 0.5 else f"{other} = {one}"


def _more(shape: _SpelledShape, draw: Random) -> list[str]:
    """Conditions that both spellings have."""
    plain = [name for name in shape.positives if name != shape.kleene]
    chosen = draw.choice(("", "", "constant", "pair"))
    if chosen == "constant":
        return [f"{draw.choice(plain)}.x < {draw.randint(20, 90)}"]
    if chosen == "pair" and len(plain) > 1:
        one, other = draw.sample(plain, 2)
        return [f"{one}.x < {other}.x + {draw.randint(0, 40)}"]
    return []
