"""An automaton and its runs as arrays (SASE+ §3–5).

A node is a run that has just taken an event: its state, what it needs to know for later edges (slots and aggregates,
the paper's computation state V), and links to the nodes that it came from. Runs with the same future share a node, so
links are the shared match buffer (§5.1), and no version numbers are needed: every walk back along the links is a run.
Live nodes of a partition and state form a list. Events are numbers in canonical order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kleene.kernels.aggregates import Aggregation
from kleene.kernels.expression import Ints, Programs
from kleene.kernels.timeline import WindowLength

Numbers = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.uint64]
# An integer, as wide as those of the arrays that it comes from or goes to.
Int = Any

# Slots of a binding that every program knows; the slots of runs come after them.
CURRENT, PREVIOUS, NEGATED, ABSENT, RUN_SLOTS = range(5)
# Edges of a state, in the order in which a run tries them; the programs of all states stand in this order, too, and
# those of absences follow.
TAKE, PROCEED, BEGIN, EDGES = range(4)
# The node of the run that has taken nothing: it stands before the first state, and always stays.
ROOT = 0
# Columns of `Runs.nodes`: one node is one line of a processor's cache.
EVENT = 0  #     the event taken last
STATE = 1
NUMBER = 2  #    events of its Kleene component, up to the cap
NEWEST = 3  #    the latest first event of a run that came here
OLDEST = 4  #    the earliest one
STARTS = 5  #    1 when a run begins here
LINK = 6  #      the first link back, or −1
SIBLING = 7  #   the next live node of its list, or −1
KILLED = 8  #    the event that it could not stay for; ALIVE, or DROPPED by a budget
TALLY = 9  #     the tally of its latest first event, or −1
CHAIN = 10  #    the next node of its chain, one for each lane (`lookups`)
FIELDS = 12
ALIVE, DROPPED = -1, -2
# Columns of `Runs.links`: the node that it leads back to, and the next link of the same node.
ORIGIN, FOLLOWING = 0, 1
# Columns of `Runs.tally`: a first event, the tally of the next older one, and how many follow it.
FIRST, OLDER, LENGTH = 0, 1, 2
# Places of `Runs.sizes`.
NODES, LINKS, COMPLETED, INSTANCES, TALLIES, LONGEST, FILED, STATUS, SIZES = range(9)
# Why `advance` returned early.
DONE, NO_ROOM, TOO_MANY_RUNS = range(3)
# Columns of `Runs.counts`.
REACHED, FAILED, STOPPED, EXPIRED, BROKEN, COUNTERS = range(6)
# Edges on which runs are found by value: taking an event, and beginning the next state with it. A run is filed once for
# each; what is found of both comes after them in `Runs.found`.
TAKING, BEGINNING, LANES = range(3)
FOUND = LANES
# Sides of an equality, and what a value is: an integer, a real number, or an integer that is compared with such.
OF_RUN, OF_EVENT = range(2)
WHOLE, REAL, AS_REAL = range(3)


class Lookups(NamedTuple):
    """Equalities of values of a run with values of an event, by which runs are found (`lookups`)."""

    first: Ints  #      [LANES * state + lane]: where the equalities of the edge begin; one more: where they end
    values: Programs  # [2 * equality + side]: leave a value
    kinds: Ints  #      [2 * equality + side, 2]: what the value is; of times, how many common steps one of its own is
    few: int  #         so many runs of a partition are offered each event, as without look-ups
    any: bool


class Machine(NamedTuple):
    """The automaton, which does not change."""

    kleene: Flags  #     [state]
    minimum: Ints  #     [state]: how many events a Kleene component needs
    maximum: Ints  #     [state]: how many it may have; −1: any number
    cap: Ints  #         [state]: beyond this number of events their number makes no difference
    first: Ints  #       [state]: the slot of its first event, or −1
    last: Ints  #        [state]: the slot of its last event once it is left, or −1
    keep: Flags  #       [state, slot]: what a run at the state still needs
    keep_groups: Flags  # [state, aggregate]
    plain: Flags  #      [state]: a run there needs nothing, so all of one event merge
    aggregates: Ints  #  [state + 1]: where each state's aggregates begin in `aggregate_slots`
    aggregate_slots: Ints
    aggregation: Aggregation
    programs: Programs  # [EDGES * state + edge], then [absence]
    within: WindowLength
    early: bool  #       whether a run dies when its window closes
    contiguous: bool  #  no event may be ignored
    next_match: bool  #  no event may be ignored that could be taken
    merges: bool
    tallies: bool  #     runs are counted by their first events, so that a window can leave some behind
    prunes: bool  #      a match ends the other runs of its partition (NON_OVERLAP)
    most: int  #         runs of a partition
    # Negated components, [absence]
    after: Ints  #       the state before it; −1: the window's start
    at: Ints  #          the state on whose begin edge it is tested; −1: complete matches
    keyed: Flags
    left: Ints  #        the slot of its left neighbour, −1: the event that the run has taken last
    right: Ints  #       the slot of its right neighbour, −1: the event that is being taken
    lookups: Lookups


class Runs(NamedTuple):
    """The runs, which grow. Arrays have room for more; `sizes` says how much of them is used."""

    nodes: Numbers  #  [node, FIELDS]
    slots: Numbers  #  [node, slot]: events that later edges read
    total: Counts  #   [node]: how many runs came here; the greatest number stands for more
    links: Numbers  #  [link, 2]
    tally: Numbers  #  [tally, 3]
    tallied: Counts  # [tally]: how many runs from this first event came to the node
    top: Numbers  #    [key, state]: the first live node
    live: Ints  #      [key]: how many are live
    completed: Numbers  # nodes that are matches
    newest_node: Numbers  # [state]: the newest node of a plain state
    buckets: Numbers  # [hash]: nodes made of the same event
    stamps: Numbers  # [hash]: of which event
    frontier: Ints  #  [partition, 2]: the step of the last match, and of the one before that step
    codes: Counts  #   [node, lane]: what a run is filed under; no lanes where nothing is looked up
    heads: Numbers  #  [lane, hash]: the newest node of each chain
    found: Numbers  #  [lane, place]: nodes with the code of an event; [FOUND, place]: those of both
    limit: Ints  #     [key]: beyond so many live runs they are tended; more than `Lookups.few`: they are filed
    instances: Numbers  # [instance]: events of negated classes
    below: Numbers  #  [instance]: the one before it of the same class and key
    newest_instance: Numbers  # [key, absence]
    counts: Ints  #    [state, counter]
    sizes: Ints


class Arrival(NamedTuple):
    """An event as it comes to the runs of its partition."""

    number: Int
    key: Int
    step: Int
    frontier: Int  #    runs that began at this step or before were ended by a match (NON_OVERLAP); −1: none
    first_node: Int  #  nodes and tallies from these on are of this event
    first_tally: Int


class Offer(NamedTuple):
    """An event that is offered to the runs at a state."""

    event: Arrival
    state: Int  # −1: before the first one, where the run is that has taken nothing
    can_take: bool
    can_begin: bool  # the next state
