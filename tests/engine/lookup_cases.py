"""Queries whose events are found by value, and events that try what `=` means: for comparisons with the reference."""

from __future__ import annotations

import random

from kleene.testing.generators import GeneratedCase

# x and z are whole, y is real.
QUERIES = (
    "PATTERN SEQ(A a, !(B b), C c) WHERE b.x = a.x",
    "PATTERN SEQ(A a, !(B b), C c) WHERE b.x = c.z AND a.s = b.s",
    "PATTERN SEQ(A a, !(B b), C c) WHERE b.y = a.x",
    "PATTERN SEQ(A a, !(B b), C c) WHERE [id] AND b.x = a.z AND b.y < c.y",
    "PATTERN SEQ(A a, C c, !(B b)) WHERE b.z = c.x",
    "PATTERN SEQ(!(B b), A a, C c) WHERE a.x = b.x",
    "PATTERN SEQ(A a, !(B b), C c, !(A d), B e) WHERE b.s = c.s AND d.y = e.x",
    "PATTERN SEQ(A a, B? e, !(B b), C c) WHERE b.x = e.x",
    "PATTERN SEQ(A+ a[], C c, !(B b)) WHERE b.x = a[1].x AND b.y = a[a.LEN].z",
    "PATTERN SEQ(A a, B b) WHERE a.x = b.z",
    "PATTERN SEQ(A a, B b) WHERE a.x = b.y",
    "PATTERN SEQ(A a, B b, C c) WHERE a.y = c.x AND b.z = c.x",
    "PATTERN A a & B b WHERE a.y = b.x",
    # Computed sides.
    "PATTERN SEQ(A a, B b) WHERE a.x + 1 = b.z",
    "PATTERN SEQ(A a, B b) WHERE a.z % 2 = b.x",
    "PATTERN SEQ(A a, B b) WHERE a.x = b.z - b.x",
    "PATTERN SEQ(A a, B b) WHERE a.y * 2 = b.x",
    "PATTERN SEQ(A a, B b) WHERE a.x / a.z = b.y",
    "PATTERN SEQ(A a, B b) WHERE a.ts + 2 = b.ts",
    "PATTERN SEQ(A a, B b, C c) WHERE a.x + b.z = c.x",
    "PATTERN SEQ(A a, B b, C c) WHERE a.z = c.x - b.x AND b.y = -c.y",
    "PATTERN A a & B b WHERE a.y - 1 = b.x AND a.s = b.s",
    "PATTERN A a ; (B b | C c) WHERE a.x + 1 = b.x AND a.z = c.z * 2",
    "PATTERN A+ a[] ; B b WHERE a[1].x + 1 = b.z AND a[a.LEN].z = b.z",
    # Conditions of NSEQ, NEG and KSEQ; of stacks and automaton, too, where they can run the pattern.
    "PATTERN SEQ(A a, !(B b), C c) WHERE b.x + 1 = a.z + a.x",
    "PATTERN SEQ(A a, !(B b), C c) WHERE b.z = a.x + c.x AND b.y = c.y",
    "PATTERN SEQ(A a, !(B b), C c) WHERE b.z = c.x - 1 AND b.x < a.x",
    "PATTERN SEQ(A a, C c, !(B b)) WHERE b.y * 2 = c.x",
    "PATTERN SEQ(A+ a[], C c, !(B b)) WHERE b.x = a[1].x + 1",
    "PATTERN A a ; B+ ; C c WHERE B.x = a.z",
    "PATTERN A a ; B* ; C c WHERE B.x + 1 = a.z + c.z AND B.y < c.y",
    "PATTERN A a ; B+ ; A+ ; C c WHERE B.z = c.z AND A.z = c.z - 1",
    "PATTERN (A a & C c) ; B+ WHERE B.y = a.x",
    "PATTERN A a & C c & !(B b) WHERE b.z = a.z * c.z",
    "PATTERN A a ; ((B b ; !(A n) ; C c) | C d) WHERE n.z = b.z",
    "PATTERN A a ; (B b | C c) ; !(A n) ; C d WHERE n.z = b.z AND n.x = a.x",
    "PATTERN A a ; B^2 ; C c WHERE B.z = a.z",
    # C lacks x, which then equals everything.
    "PATTERN ANY(A, C) a ; B b WHERE a.x + 1 = b.z",
    "PATTERN A a ; !(ANY(B, C) b) ; A c WHERE b.x = a.z AND a.z = c.x",
    "PATTERN A a ; ANY(B, C)+ k ; A c WHERE k.x - 1 = a.z",
)
REALS = (0.0, -0.0, 1.0, 2.0, 1.5, float("nan"), 2.0**53, None)
WHOLES = (0, 1, 2, 2**53, 2**53 + 1, None)


def lookup_case(draw: random.Random, query: str) -> GeneratedCase:
    """A query with a window, and events with NULL, NaN, and numbers that only one of integers and reals has."""
    # Few values a case, so that some are equal.
    wholes, reals = draw.sample(WHOLES, 3), draw.sample(REALS, 3)
    now, rows = 0, []
    for _ in range(draw.randint(8, 14)):
        now += draw.choice((0, 0, 1, 1, 2))
        row = {
            "type": draw.choice("AABBBCC"),
            "ts": now,
            "id": draw.choice((1, 1, 2)),
            "s": draw.choice(("u", "v", None)),
        }
        rows.append({**row, "x": draw.choice(wholes), "z": draw.choice(WHOLES[:3]), "y": draw.choice(reals)})
    types = {name: {"id", "s", "x", "y", "z"} - ({"x"} if name == "C" else set()) for name in "ABC"}
    return GeneratedCase(f"{query} WITHIN {draw.randint(5, 14)}", rows, types if "ANY" in query else None)
