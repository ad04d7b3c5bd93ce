"""Several programs in one array, for kernels that choose among them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from kleene.engine.executors.linking import link
from kleene.engine.intake.strings import StringPool
from kleene.kernels.expression import Code, Programs
from kleene.plan.program import Program


def joined(programs: Sequence[Program], strings: StringPool) -> Programs:
    if not any(program.code.size for program in programs):
        return _nothing_tested(len(programs))
    linked = [link(program, strings) for program in programs]
    parts = np.zeros((len(linked), 6), np.int64)
    at = [0, 0, 0]
    for place, code in enumerate(linked):
        for kind, array in enumerate((code.words, code.ints, code.reals)):
            parts[place, 2 * kind], parts[place, 2 * kind + 1] = at[kind], at[kind] + array.size
            at[kind] += array.size
    return Programs(Code(*(np.concatenate([code[kind] for code in linked]) for kind in range(3))), parts)


@cache
def _nothing_tested(number: int) -> Programs:
    code = Code(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float64))
    return Programs(code, np.zeros((number, 6), np.int64))


def depth_of(programs: Sequence[Program]) -> int:
    return max([program.depth for program in programs], default=0) + 1
