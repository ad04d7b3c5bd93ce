"""Patterns of many classes that are no lines: they are planned without trying every order, and run."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pyarrow as pa
import pytest
from tests.engine.batches import bound

from kleene.engine.engine import Engine
from kleene.plan.settings import Adapting, Settings

SETTINGS = [Settings(), Settings(adapting=Adapting(round=3))]


def stream(types: Sequence[str]) -> pa.Table:
    """One event after the other, of these types."""
    return pa.table(
        {
            "type": pa.array(types, pa.string()),
            "ts": pa.array(range(len(types)), pa.int64()),
            "id": pa.array(["0"] * len(types), pa.string()),
        }
    )


def run(text: str, types: Sequence[str], settings: Settings) -> int:
    """How many matches there are; planning and running take no long time."""
    began = time.process_time()
    table = stream(types)
    engine = Engine(bound(text, table), settings)
    engine.process(table)
    made = engine.finish().matches
    assert made is not None
    assert time.process_time() - began < 20
    return int(made.num_rows)


@pytest.mark.parametrize("settings", SETTINGS, ids=["large rounds", "small rounds"])
@pytest.mark.parametrize("where", ["", " WHERE [id]", " WHERE t0.ts < t7.ts AND t1.id = t6.id"])
def test_a_conjunction_of_eight(settings: Settings, where: str) -> None:
    """Two events of each class, in any order: all combinations, but for those in which the last T7 is before T0."""
    names = [f"T{number}" for number in range(8)]
    text = f"PATTERN {' & '.join(f'{name} {name.lower()}' for name in names)}{where} WITHIN 99"
    kinds = [*names, *reversed(names)]
    found = run(text, kinds, settings)
    # t0 is at 0 or 15 and t7 at 7 or 8.
    assert found == (2**8 if "t0.ts" not in where else 2 * 2**6)


@pytest.mark.parametrize("settings", SETTINGS, ids=["large rounds", "small rounds"])
def test_a_sequence_of_twenty_with_conjunctions_and_disjunctions(settings: Settings) -> None:
    parts, kinds = [], []
    for number in range(20):
        one, other = f"T{number}", f"U{number}"
        match number % 4:
            case 0 | 1:
                parts.append(f"{one} t{number}")
                kinds.append(one)
            case 2:
                parts.append(f"({one} t{number} & {other} u{number})")
                kinds += [other, one]
            case _:
                parts.append(f"({one} t{number} | {other} u{number})")
                kinds += [other, one]
    text = f"PATTERN {' ; '.join(parts)} WHERE t0.id = t19.id AND u2.ts < t2.ts WITHIN 99"
    # Each of five disjunctions has two events to choose from.
    assert run(text, kinds, settings) == 2**5
    assert run(text, kinds[:-2], settings) == 0
    assert run(text, [*kinds, kinds[-1]], settings) == 3 * 2**4


def test_a_sequence_of_twenty_with_negations_and_a_closure() -> None:
    text = " ; ".join(f"T{number} t{number}" for number in range(20))
    text = text.replace(" ; T5 t5", " ; !(N n) ; T5 t5").replace(" ; T9 t9", " ; K+ ; T9 t9")
    text = text.replace("T15 t15", "(T15 t15 & X x)")
    kinds = [f"T{number}" for number in range(20)]
    kinds[9:9] = ["K", "K"]
    kinds.insert(kinds.index("T15"), "X")
    pattern = f"PATTERN {text} ; !(M m) WITHIN 40"
    assert run(pattern, kinds, Settings()) == 1
    assert run(pattern, [*kinds[:5], "N", *kinds[5:]], Settings()) == 0
    assert run(pattern, [kinds[0], "N", *kinds[1:]], Settings()) == 1
    assert run(pattern, [*kinds, "M"], Settings()) == 0
    assert run(pattern, [kind for kind in kinds if kind != "K"], Settings()) == 0
