"""Rooms whose instances wait in the order of a bound: an event looks at those below its own value, and at no others.

All such rooms are one search tree, by room and bound, kept in shape by chance (a treap): each instance has a rank that
follows from its number, and none has a greater rank than the one over it. So a place is found in about as many steps as
the logarithm of how many wait.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kleene.kernels.expression import Ints
from kleene.kernels.identity import mix
from kleene.kernels.jit import inlined, step
from kleene.kernels.shared_nodes import Numbers
from kleene.kernels.stream_instances import Hashes

# Sides of an instance.
_LESS, _MORE = 0, 1


class OrderedRooms(NamedTuple):
    """Instances as a tree; −1: nobody."""

    under: Numbers  #  [instance, 2]: what is less, and what is more
    over: Numbers  #   [instance]
    bounds: Ints  #    [instance]
    top: Numbers  #    [1]


@step
def enter_in_order(ordered: OrderedRooms, rooms: Hashes, instance: int, room: np.uint64, bound: int) -> None:
    """Let an instance wait in a room, in the order of its bound."""
    rooms[instance], ordered.bounds[instance] = room, bound
    ordered.under[instance, _LESS], ordered.under[instance, _MORE] = -1, -1
    over, side, at = -1, 0, ordered.top[0]
    while at >= 0:
        over, side = at, _MORE if _is_before(ordered, rooms, at, room, bound) else _LESS
        at = ordered.under[at, side]
    _hang(ordered, over, side, instance)
    while ordered.over[instance] >= 0 and _rank(ordered.over[instance]) < _rank(instance):
        _lift(ordered, instance)


@step
def leave_order(ordered: OrderedRooms, instance: int) -> None:
    """Take an instance out of the order of its room."""
    less, more = ordered.under[instance, _LESS], ordered.under[instance, _MORE]
    while less >= 0 or more >= 0:
        lifted = less
        if less < 0 or (more >= 0 and _rank(more) > _rank(less)):
            lifted = more
        _lift(ordered, lifted)
        less, more = ordered.under[instance, _LESS], ordered.under[instance, _MORE]
    over = ordered.over[instance]
    if over < 0:
        ordered.top[0] = -1
    elif ordered.under[over, _LESS] == instance:
        ordered.under[over, _LESS] = -1
    else:
        ordered.under[over, _MORE] = -1


@step
def first_in_order(ordered: OrderedRooms, rooms: Hashes, room: np.uint64) -> int:
    """The instance of a room with the least bound; without one, somebody of another room, or nobody."""
    first, at = -1, ordered.top[0]
    while at >= 0:
        if rooms[at] < room:
            at = ordered.under[at, _MORE]
        else:
            first, at = at, ordered.under[at, _LESS]
    return int(first)


@step
def next_in_order(ordered: OrderedRooms, instance: int) -> int:
    """The instance that follows, of this room or of another one; −1: nobody."""
    at = ordered.under[instance, _MORE]
    if at >= 0:
        while ordered.under[at, _LESS] >= 0:
            at = ordered.under[at, _LESS]
        return int(at)
    at, below = ordered.over[instance], instance
    while at >= 0 and ordered.under[at, _MORE] == below:
        at, below = ordered.over[at], at
    return int(at)


@inlined
def _is_before(ordered: OrderedRooms, rooms: Hashes, instance: int, room: np.uint64, bound: int) -> bool:
    return bool(rooms[instance] < room or (rooms[instance] == room and ordered.bounds[instance] <= bound))


@inlined
def _rank(instance: int) -> np.uint64:
    return mix(np.uint64(instance + 1))


@inlined
def _hang(ordered: OrderedRooms, over: int, side: int, instance: int) -> None:
    """Put an instance, or nobody, under another one; −1: on top."""
    if over < 0:
        ordered.top[0] = instance
    else:
        ordered.under[over, side] = instance
    if instance >= 0:
        ordered.over[instance] = over


@inlined
def _lift(ordered: OrderedRooms, instance: int) -> None:
    """Let an instance change places with the one over it; the order stays."""
    over = ordered.over[instance]
    side = _LESS if ordered.under[over, _LESS] == instance else _MORE
    topmost = ordered.over[over]
    side_above = 0
    if topmost >= 0 and ordered.under[topmost, _MORE] == over:
        side_above = _MORE
    _hang(ordered, over, side, ordered.under[instance, 1 - side])
    _hang(ordered, topmost, side_above, instance)
    _hang(ordered, instance, 1 - side, over)
