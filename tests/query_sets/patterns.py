"""Random queries of the main spelling over the events of random streams: lines, closures, negations, trees."""

from __future__ import annotations

from random import Random

STRATEGIES = ("strict_contiguity", "partition_contiguity", "skip_till_next_match", "skip_till_any_match")


def random_pattern(rng: Random) -> str:
    """A query whose matches are few enough to count."""
    kinds = (_line, _line, _line, _closure, _negation, _tree)
    return "PATTERN " + rng.choice(kinds)(rng)


def _line(rng: Random) -> str:
    names = "abc"[: rng.randint(1, 3)]
    parts = ", ".join(f"{rng.choice(('A', 'B', 'ANY(A, B)'))} {name}" for name in names)
    clauses = [_about(rng, rng.choice(names), rng.choice(names)) for _ in range(rng.randint(0, 3))]
    returned = rng.choice(("", "", " RETURN a.x, a.k AS key_of_a", " RETURN a.x + 1 AS more"))
    return f"SEQ({parts}){_where(rng, clauses, rng.choice((None, *STRATEGIES)))} WITHIN {rng.randint(3, 9)}{returned}"


def _closure(rng: Random) -> str:
    if rng.random() < 0.2:
        clauses = [_compared(rng, "B"), _compared(rng, "a")]
        return f"A a ; B+ ; ANY(A, B) c{_where(rng, clauses, None)} WITHIN {rng.randint(4, 8)}"
    pattern, many, one = rng.choice((("SEQ(A+ a[], B b)", "a", "b"), ("SEQ(A a, B+ b[], A c)", "b", "c")))
    choices = [
        f"{many}[i].x > {rng.randint(0, 3)}",
        f"{many}[i].x >= {many}[i-1].x",
        f"{many}[1].x = {rng.randint(0, 4)}",
        f"sum({many}[..].x) > {rng.randint(0, 6)}",
        f"{one}.x < {many}[{many}.LEN].x + {rng.randint(0, 2)}",
        _compared(rng, one),
    ]
    window = rng.choice((f"{rng.randint(3, 6)}", f"{rng.randint(3, 5)} EVENTS"))
    output = rng.choice(("", "", " OUTPUT NON_OVERLAP"))
    where = _where(rng, rng.sample(choices, rng.randint(1, 3)), rng.choice(STRATEGIES))
    return f"{pattern}{where} WITHIN {window}{output}"


def _negation(rng: Random) -> str:
    pattern = rng.choice(("SEQ(A a, !(B n), A b)", "SEQ(A a, B b, !(A n))", "SEQ(!(A n), B a, A b)"))
    choices = [_compared(rng, "n"), f"n.x > a.x + {rng.randint(0, 1)}", _compared(rng, "a"), _compared(rng, "b")]
    clauses = rng.sample(choices, rng.randint(1, 3))
    if rng.random() < 0.3:
        clauses.append(f"[k = {rng.randint(0, 1)}]")
    window = rng.choice((f"{rng.randint(3, 8)}", f"{rng.randint(3, 8)} INCLUSIVE", f"{rng.randint(3, 6)} EVENTS"))
    return f"{pattern}{_where(rng, clauses, None)} WITHIN {window}{rng.choice(('', ' RETURN a.x'))}"


def _tree(rng: Random) -> str:
    pattern, names = rng.choice(
        (("A a & B b", "ab"), ("A a ; (B b | A c)", "a"), ("(A a & B b) ; A c", "abc"), ("A a ; B? b ; A c", "ac"))
    )
    clauses = [_compared(rng, rng.choice(names)) for _ in range(rng.randint(0, 2))]
    return f"{pattern}{_where(rng, clauses, None)} WITHIN {rng.randint(3, 6)}"


def _where(rng: Random, clauses: list[str], strategy: str | None) -> str:
    listed = [*clauses, *(["[k]"] if rng.random() < 0.4 or (strategy is not None and not clauses) else [])]
    rng.shuffle(listed)
    if not listed:
        return ""
    together = " AND ".join(listed)
    return f" WHERE {together}" if strategy is None else f" WHERE {strategy} {{ {together} }}"


def _compared(rng: Random, name: str) -> str:
    """A condition on one event."""
    return rng.choice(
        (
            f"{name}.x {rng.choice(('=', '>', '<=', '!='))} {rng.randint(0, 4)}",
            f"{name}.y {rng.choice(('>', '<='))} {rng.randint(0, 6) / 2}",
            f"{name}.s = '{rng.choice('pq')}'",
            f"{name}.x IN ({rng.randint(0, 2)}, {rng.randint(3, 5)})",
        )
    )


def _about(rng: Random, name: str, other: str) -> str:
    """A condition on one event, or on two."""
    between = (
        f"{name}.x < {other}.x + {rng.randint(0, 2)}",
        f"{name}.s = {other}.s",
        f"{name}.y >= {other}.y",
        f"({name}.x = {rng.randint(0, 4)} OR {other}.s = '{rng.choice('pq')}')",
    )
    return _compared(rng, name) if name == other or rng.random() < 0.6 else rng.choice(between)
