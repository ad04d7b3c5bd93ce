"""Some of the random agreement, for a process of its own: `python -m tests.engine.quick_agreement '[["ties", 3]]'`.

Strata and seeds are those of `test_engine_agrees`.
It stops at the first disagreement; the last line says what came of it.
"""

from __future__ import annotations

import json
import random
import sys
import traceback
import warnings
from collections.abc import Iterable

from tests.engine.agreement import SETTINGS, case_of, check, pair_of

import kleene


def run(places: Iterable[tuple[str, int]]) -> dict[str, object]:
    """How many pairs were compared, and where the first disagreement is."""
    compared = 0
    for stratum, seed in places:
        draw = random.Random(f"{stratum} {seed}")
        pair = pair_of(case_of(draw, stratum))
        if pair is None:
            continue
        try:
            compared += check(pair, SETTINGS[seed % len(SETTINGS)], draw)
        except Exception:
            return {"compared": compared, "place": [stratum, seed], "problem": traceback.format_exc()}
    return {"compared": compared}


if __name__ == "__main__":
    # NumPy warns of overflow where compiled code does not.
    warnings.simplefilter("ignore")
    print(json.dumps({**run(json.loads(sys.argv[1])), "kleene": kleene.__file__}))
