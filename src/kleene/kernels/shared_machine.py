"""The arrays of event automata that many queries share: shapes, instances, results, and what their columns are."""

from __future__ import annotations

from typing import NamedTuple

from kleene.kernels.expression import Bytes, Ints, Reals
from kleene.kernels.ordered_rooms import OrderedRooms
from kleene.kernels.shared_nodes import Numbers, SharedGraph
from kleene.kernels.stream_instances import Hashes, Instances, StreamEvents

# Columns of the shape of a node: how many cells its instances have, whether they are results, the kind of room where
# instances wait, where the sources of these values begin and end, the test of the filter edge, the shape
# of the rebind edge (−1: there is none), which of its constants says how long a composite event may last (−1: any
# time), whether instances go on waiting where an event has served them, whether they leave when they are too old to be
# served, and, where they wait in the order of a bound, what they have it from (−1: they do not), which constant or cell
# that is, and whether an event's value must be beyond.
WIDTH, IS_FINAL, ROOM, KEYS, KEYS_END, FILTER, REBIND, MOST, STAYS, EXPIRES, BOUND, BOUND_PLACE, BEYOND = range(13)
NODE_SHAPE_WIDTH = 13

# Columns of a kind of room: the set of columns by which instances are found, the column that is compared with their
# bounds (−1: they wait in no order), and whether it must be less than these.
BY, ORDERED_BY, LESS, ROOM_KIND_WIDTH = range(4)

# Columns of the shape of an edge: its test, where its assignments begin and end, the shape of the node it enters, and
# the set of columns by which it is looked up (−1: it leads back).
TEST, ASSIGNMENTS, ASSIGNMENTS_END, ENTERS, FOUND_BY, EDGE_SHAPE_WIDTH = range(6)

# Where an instance has a value of its room from, or its bound: a constant of its node, a cell, or a cell with a real.
OF_NODE, OF_CELL, OF_REAL_CELL = range(3)

# Sources of the cells of a new instance: cells of the one before it, columns of the event, the value of a program, or
# NULL; the first two are copied, several side by side at once.
FROM_CELLS, FROM_EVENT, FROM_INT_PROGRAM, FROM_REAL_PROGRAM, FROM_NOWHERE = range(5)

# What is counted: edges that were looked at in the index and those that fired, rooms opened, instances looked at,
# served, made, and too old. The last one means nothing: it keeps the compiler from leaving out what is read ahead.
LOOKED_AT, FIRED, OPENED, TOUCHED, SERVED_COUNT, MADE, EXPIRED, TOUCHED_AHEAD, COUNTERS = range(9)


class SharedShapes(NamedTuple):
    """What nodes and edges have in common, but for their constants."""

    nodes: Ints  #        [shape of nodes, NODE_SHAPE_WIDTH]
    edges: Ints  #        [shape of edges, EDGE_SHAPE_WIDTH]
    keys: Ints  #         [key, 2]: OF_NODE …, and the constant or the cell
    assignments: Ints  #  [assignment, 4]: FROM_CELLS …, the first cell, the first source or a program, how many cells
    words: Ints  #        [word]: all programs
    parts: Ints  #        [program, 6]: where its words, integers and reals begin and end, the latter by constant
    columns: Ints  #      [place]: the columns of sets, one set after the other
    sets: Ints  #         [set + 1]: where each set begins
    rooms: Ints  #        [kind of room, ROOM_KIND_WIDTH]


class AtomColumns(NamedTuple):
    """The values of events that edges and rooms are looked up by, as integers in the order of the values."""

    values: Ints  #  [event, column]
    known: Bytes  #  [event, column]: 1 where there is a value that can be equal, or within bounds


class SharedInstances(NamedTuple):
    """Instances at nodes: `at` of the pool is the node.

    What is asked of a node most often stands with the instance: nodes are many, and far apart in memory.
    """

    pool: Instances
    shapes: Numbers  # [instance]: the shape of its node
    own: Numbers  #    [instance]: where the constants of its node are
    begun: Ints  #    [instance]: the end of its first event
    noted: Ints  #    [place, 2]: steps and the nodes where they made instances, by a hash of the node
    visits: Numbers  # [visit]: whose edges an event traverses: −1 for the root, instances that it serves
    looked_up: Ints  # [visit, 3]: the first access of the node (−1: none), the first edge of its bucket, and the hash
    occupied: Ints  # [kind of room]: how many instances wait
    counters: Ints  # [COUNTERS]
    ordered: OrderedRooms


class SharedResults(NamedTuple):
    """Room for results: what instances hold, the node where they ended, and when their first events ended."""

    cells: Ints  #   [result, cell]
    states: Bytes  # [result, cell]
    nodes: Ints  #   [result]
    begun: Ints  #   [result]


class SharedMachine(NamedTuple):
    graph: SharedGraph
    shapes: SharedShapes
    reals: Reals  # [place]: the constants of the graph, those that are reals


class LookAhead(NamedTuple):
    """What was looked up for some events beforehand: edges by access of the root, and rooms by their kind.

    Nothing depends on these look-ups: the processor waits for many of them at once, where one event after the other
    would wait for each. Most of an event's time is waiting for memory.
    """

    heads: Ints  #    [event, access]: the first edge of the bucket; −1: there is none
    hashes: Hashes  # [event, access]
    opens: Bytes  #   [event, kind of room]: whether the event has the values of a room; NOT_ASKED
    rooms: Hashes  #  [event, kind of room]
    first: Ints  #    [event, kind of room]: who waits first in the room, or in another of its bucket; −1: nobody


# For so many events edges of the root and rooms are looked up beforehand.
AHEAD = 32
# Nothing waited in rooms of this kind then.
NOT_ASKED = 2


class EventCells(NamedTuple):
    """The values of events as cells have them: instances copy them."""

    values: Ints  #   [event, column]; reals as their bits
    states: Bytes  #  [event, column]: VALUE or NULL


class Coming(NamedTuple):
    """Events in the order of their last points."""

    events: StreamEvents
    atoms: AtomColumns
    cells: EventCells
