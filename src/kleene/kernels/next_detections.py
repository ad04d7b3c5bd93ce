"""`E1 ; E2_{φ,θ}` (NEXT §3.4): left detections wait, in a queue for each key, for the first right one after them.

Without more of φ than the key, a right detection takes all that ended before it starts: the head of one queue, each of
them once. With more of φ it looks at those that wait under its key.
"""

from __future__ import annotations

from typing import NamedTuple

from kleene.kernels.detections import DetectionArrays, Flags, PairTests, fits, is_before
from kleene.kernels.expression import Bytes, Ints, ProgramScope
from kleene.kernels.jit import borrowed, compiled, step

# Tests of a `;`: what of φ is no key, θ, and λ of each exception.
FIRST_OF, CONDITION, FAILING = range(3)

# What a failed detection does to the runs that satisfy λ: pass on with the events of each, or end them.
PASSES, KILLS = range(2)

# Columns of `progress`: the next place among the rights, the next left, the first left that is not gone, pairs and
# failures so far, how many lefts were looked at.
AT, ADDED, FIRST_LEFT, PAIRS, FAILURES, LOOKS, PROGRESS = range(7)


class Waiting(NamedTuple):
    """Left detections, which wait in queues."""

    keys: Ints  #      [left]: −1: no right one has its key
    expires: Ints  #   [left]: the last moment at which it still waits
    gone: Bytes  #     [left]: whether it was used up, or has died
    following: Ints  # [left]: the next one of its queue, or −1
    heads: Ints  #     [key]
    tails: Ints  #     [key]
    sizes: Ints  #     [key]


class Awaited(NamedTuple):
    """Right detections, and failed ones, in the order in which they are looked at."""

    order: Ints  #   [place]: the number of a right detection
    groups: Ints  #  [place]: equal for those of one history and one key
    keys: Ints  #    [right]: its key; −1: no left one has it; of a failed one −2: whatever the key
    failed: Ints  #  [right]: −1, or which of the exceptions failed
    effects: Ints  # [exception]: PASSES or KILLS
    passes: Flags  # [right]: whether it satisfies what θ asks of it alone


class NextInput(NamedTuple):
    lefts: DetectionArrays
    waiting: Waiting
    rights: DetectionArrays
    awaited: Awaited
    tests: PairTests
    scope: ProgramScope


class NextResults(NamedTuple):
    pairs: Ints  #    [pair, 2]: out: a left and a right detection
    failures: Ints  # [pair, 2]: out: a left detection and the failed one that it has seen
    progress: Ints  # [PROGRESS]


@compiled
def advance(given: NextInput, scans: bool, out: NextResults) -> bool:
    """Look at the rights one after another; False when there was no room for more results.

    scans   whether φ is more than the key
    """
    given, out = borrowed(given), borrowed(out)
    lefts, waiting, rights, awaited = given.lefts, given.waiting, given.rights, given.awaited
    progress, order = out.progress, awaited.order
    while progress[AT] < order.size:
        begin = progress[AT]
        first = order[begin]
        end = begin + 1
        while end < order.size and awaited.groups[end] == awaited.groups[begin]:
            end += 1
        _add(lefts, waiting, rights.ends[first], rights.end_ties[first], progress)
        key = awaited.keys[first]
        if awaited.failed[first] >= 0:
            if progress[FAILURES] + progress[ADDED] > out.failures.shape[0]:
                return False
            _fail(given, first, out)
        elif key >= 0:
            if progress[PAIRS] + waiting.sizes[key] * (end - begin) > out.pairs.shape[0]:
                return False
            _take(given, scans, begin, end, out)
        progress[AT] = end
    return True


@step
def _add(lefts: DetectionArrays, waiting: Waiting, moment: int, tie: int, progress: Ints) -> None:
    """Put the lefts that ended before a point into their queues."""
    while progress[ADDED] < lefts.ends.size:
        left = progress[ADDED]
        if not is_before(lefts.ends[left], lefts.end_ties[left], moment, tie):
            break
        key = waiting.keys[left]
        if key >= 0:
            if waiting.heads[key] < 0:
                waiting.heads[key] = left
            else:
                waiting.following[waiting.tails[key]] = left
            waiting.tails[key] = left
            waiting.sizes[key] += 1
        progress[ADDED] += 1


@step
def _take(given: NextInput, scans: bool, begin: int, end: int, out: NextResults) -> None:
    """Rights of one history and one key take the lefts that ended before them and satisfy φ with one of them."""
    lefts, waiting, rights, awaited = given.lefts, given.waiting, given.rights, given.awaited
    progress, first = out.progress, awaited.order[begin]
    key = awaited.keys[first]
    has_condition = given.tests.ranges[CONDITION, 0] < given.tests.ranges[CONDITION, 1]
    before, left = -1, waiting.heads[key]
    while left >= 0 and is_before(
        lefts.ends[left], lefts.end_ties[left], rights.starts[first], rights.start_ties[first]
    ):
        following = waiting.following[left]
        taken = waiting.gone[left] == 1
        progress[LOOKS] += 1
        if not taken:
            for place in range(begin, end):
                right = awaited.order[place]
                if scans and not fits(given.tests, FIRST_OF, given.scope, lefts, left, rights, right):
                    continue
                taken = True
                if awaited.passes[right] and (
                    not has_condition or fits(given.tests, CONDITION, given.scope, lefts, left, rights, right)
                ):
                    out.pairs[progress[PAIRS], 0] = left
                    out.pairs[progress[PAIRS], 1] = right
                    progress[PAIRS] += 1
        if taken:
            waiting.gone[left] = 1
            _leave(waiting, key, before, left, following)
        else:
            before = left
        left = following


@step
def _fail(given: NextInput, failed: int, out: NextResults) -> None:
    """A failed detection is seen by all lefts that wait and satisfy λ, and ends them where λ is wholly known."""
    lefts, waiting, rights, awaited = given.lefts, given.waiting, given.rights, given.awaited
    progress, exception, key = out.progress, awaited.failed[failed], awaited.keys[failed]
    effect = awaited.effects[exception]
    if key == -1:
        return
    while progress[FIRST_LEFT] < progress[ADDED] and waiting.gone[progress[FIRST_LEFT]] == 1:
        progress[FIRST_LEFT] += 1
    before, left = -1, waiting.heads[key] if key >= 0 else progress[FIRST_LEFT]
    while 0 <= left < progress[ADDED]:
        following = waiting.following[left] if key >= 0 else left + 1
        progress[LOOKS] += 1
        dead = waiting.gone[left] == 1
        if (
            not dead
            and rights.ends[failed] <= waiting.expires[left]
            and fits(given.tests, FAILING + exception, given.scope, lefts, left, rights, failed)
        ):
            out.failures[progress[FAILURES], 0] = left
            out.failures[progress[FAILURES], 1] = failed
            progress[FAILURES] += 1
            dead = effect == KILLS
        if not dead:
            before = left
        else:
            waiting.gone[left] = 1
            if key >= 0:
                _leave(waiting, key, before, left, following)
        left = following


@step
def _leave(waiting: Waiting, key: int, before: int, left: int, following: int) -> None:
    """Take a left detection out of its queue."""
    waiting.sizes[key] -= 1
    if before < 0:
        waiting.heads[key] = following
    else:
        waiting.following[before] = following
    if following < 0:
        waiting.tails[key] = before
