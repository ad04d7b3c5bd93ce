"""Rooms in the order of a bound, against a sorted list."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from kleene.kernels.ordered_rooms import (
    OrderedRooms,
    enter_in_order,
    first_in_order,
    leave_order,
    next_in_order,
)

SIZE = 200


def nobody(size: int) -> OrderedRooms:
    under, over, top = (np.full(shape, -1, np.int32) for shape in ((size, 2), size, 1))
    return OrderedRooms(under, over, np.zeros(size, np.int64), top)


@pytest.mark.parametrize("seed", range(4))
def test_instances_come_in_the_order_of_their_bounds(seed: int) -> None:
    rng = Random(seed)
    rooms = np.zeros(SIZE, np.uint64)
    ordered = nobody(SIZE)
    waiting: dict[int, tuple[int, int]] = {}
    for _ in range(1_500):
        instance = rng.randrange(SIZE)
        if instance in waiting:
            leave_order(ordered, instance)
            del waiting[instance]
        else:
            # The greatest room and bounds at both ends of their range are among them.
            room, bound = rng.choice((0, 7, 2**64 - 1)), rng.choice((-(2**63), -3, 0, 5, 2**63 - 1))
            enter_in_order(ordered, rooms, instance, np.uint64(room), bound)
            waiting[instance] = room, bound
        for room in (0, 7, 2**64 - 1):
            expected = sorted(each for each in waiting.values() if each[0] == room)
            at, listed = first_in_order(ordered, rooms, np.uint64(room)), []
            while at >= 0 and rooms[at] == room:
                listed.append((int(rooms[at]), int(ordered.bounds[at])))
                at = next_in_order(ordered, at)
            assert listed == expected


def test_rising_bounds_make_no_list() -> None:
    """The depth stays near the logarithm, whatever order instances come in."""
    size = 4_096
    rooms = np.zeros(size, np.uint64)
    ordered = nobody(size)
    for instance in range(size):
        enter_in_order(ordered, rooms, instance, np.uint64(1), instance)
    depth = np.zeros(size, np.int64)
    for instance in range(size):
        at = instance
        while at >= 0:
            depth[instance] += 1
            at = ordered.over[at]
    assert depth.max() <= 6 * 12
