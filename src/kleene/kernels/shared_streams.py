"""Event automata of many queries at once (CESAR §4.3): what an event costs follows from what it affects.

An event visits the root, whose edges it finds by its own values, and opens the rooms of its own values, where instances
wait: under the values that their filter tests for equality, be they constants or of events before (the AN- and the
AI-index in one). An instance whose filter holds leaves; its event then visits the node where it waited.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kleene.kernels import opcodes as op
from kleene.kernels.expression import Bytes, Code, Ints, ProgramScope, Reals, holds
from kleene.kernels.identity import mix
from kleene.kernels.jit import borrowed, compiled, inlined, step
from kleene.kernels.ordered_rooms import (
    OrderedRooms,
    enter_in_order,
    first_in_order,
    leave_order,
    next_in_order,
)
from kleene.kernels.shared_nodes import (
    ACCESSES,
    COLUMN_SET,
    FIRST,
    HASH,
    HIGH,
    LEAVING,
    LINKS,
    LOW,
    NEXT_ACCESS,
    NEXT_IN_BUCKET,
    NODE_SHAPE,
    OTHER_HIGH,
    OTHER_LOW,
    OWN_CONSTANTS,
    RANGED,
    ROOT,
    TARGET,
    USERS,
    Numbers,
    SharedGraph,
    access_hash,
    bucket_of,
    end_in_run,
    first_range,
    lower,
    next_in_run,
    second_range,
    upper,
    with_value,
)
from kleene.kernels.stream_instances import (
    COMPUTED_REAL,
    END,
    END_TIE,
    FREE,
    FROM_CELL,
    FROM_INTS,
    FROM_REALS,
    LACKS,
    NAN_BITS,
    NEW,
    NO_INSTANCES,
    NO_RESULTS,
    NOTHING,
    RESULTS,
    SERVED,
    START,
    START_TIE,
    STEPS,
    Hashes,
    Instances,
    StreamEvents,
    enter,
    equal_one,
    free,
    is_over,
    leave,
    put_int,
    put_real,
    undo,
)
from kleene.kernels.timeline import LATEST

# Columns of the shape of a node: how many cells its instances have, whether they are results, the kind of room where
# instances wait, where the sources of these values begin and end, the test of the filter edge, the shape
# of the rebind edge (−1: there is none), which of its constants says how long a composite event may last (−1: any
# time), whether instances go on waiting where an event has served them, and, where they wait in the order of a bound,
# what they have it from (−1: they do not), which constant or cell that is, and whether an event's value must be beyond.
WIDTH, IS_FINAL, ROOM, KEYS, KEYS_END, FILTER, REBIND, MOST, STAYS, BOUND, BOUND_PLACE, BEYOND, NODE_SHAPE_WIDTH = (
    range(13)
)

# Columns of a kind of room: the set of columns by which instances are found, the column that is compared with their
# bounds (−1: they wait in no order), and whether it must be less than these.
BY, ORDERED_BY, LESS, ROOM_KIND_WIDTH = range(4)

# Columns of the shape of an edge: its test, where its assignments begin and end, the shape of the node it enters, and
# the set of columns by which it is looked up (−1: it leads back).
TEST, ASSIGNMENTS, ASSIGNMENTS_END, ENTERS, FOUND_BY, EDGE_SHAPE_WIDTH = range(6)

# Where an instance has a value of its room from, or its bound: a constant of its node, a cell, or a cell with a real.
OF_NODE, OF_CELL, OF_REAL_CELL = range(3)

# What is counted: edges that were looked at in the index and those that fired, rooms opened, instances looked at,
# served, made, and too old. The last one means nothing: it keeps the compiler from leaving out what is read ahead.
LOOKED_AT, FIRED, OPENED, TOUCHED, SERVED_COUNT, MADE, EXPIRED, TOUCHED_AHEAD, COUNTERS = range(9)

# For so many events edges of the root are looked up beforehand.
_AHEAD = 32


class SharedShapes(NamedTuple):
    """What nodes and edges have in common, but for their constants."""

    nodes: Ints  #        [shape of nodes, NODE_SHAPE_WIDTH]
    edges: Ints  #        [shape of edges, EDGE_SHAPE_WIDTH]
    keys: Ints  #         [key, 2]: OF_NODE …, and the constant or the cell
    assignments: Ints  #  [assignment, 4]: cell, FROM_CELL …; cell, place or program; number of the column
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
    looked_up: Ints  # [visit, 3]: the first access of the node, the first edge of its bucket, and the hash
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
    """What was looked up for some events beforehand, by access of the root."""

    heads: Ints  #    [event, access]: the first edge of the bucket; −1: there is none
    hashes: Hashes  # [event, access]


class Coming(NamedTuple):
    """Events in the order of their last points."""

    events: StreamEvents
    atoms: AtomColumns


@compiled
def advance_shared(
    machine: SharedMachine,
    coming: Coming,
    instances: SharedInstances,
    results: SharedResults,
    scope: ProgramScope,
    begin: int,
) -> int:
    """Take in events from `begin` on; the first of a step for which there is no room, or how many events there are.

    scope   the columns of the events, one binding for the newest of them, and the cells of instances as groups
    """
    machine, coming, instances = borrowed(machine), borrowed(coming), borrowed(instances)
    results, scope = borrowed(results), borrowed(scope)
    events, sizes = coming.events, instances.pool.sizes
    number = _count_root_accesses(machine.graph)
    ahead = LookAhead(np.empty((_AHEAD, number), np.int64), np.empty((_AHEAD, number), np.uint64))
    first_ahead, last_ahead = 0, 0
    at = begin
    while at < events.ends.size:
        stop = at + 1
        while stop < events.ends.size and _simultaneous(events, at, stop):
            stop += 1
        sizes[STEPS] += 1
        has_room = True
        for event in range(at, stop):
            scope.bindings[0, 0] = event
            if event < first_ahead or event >= last_ahead:
                first_ahead, last_ahead = event, min(event + _AHEAD, events.ends.size)
                _look_ahead(machine, coming.atoms, ahead, first_ahead, last_ahead, instances.counters)
            visits = _open_rooms(machine, coming, instances, scope, event)
            has_room = has_room and _traverse(
                machine, coming, instances, scope, (event, visits, event - first_ahead), ahead
            )
        if not has_room or not _results_fit(machine, instances, results):
            sizes[LACKS] = NO_RESULTS if has_room else NO_INSTANCES
            undo(instances.pool)
            return at
        _commit(machine, instances, results)
        at = stop
    return at


@step
def _simultaneous(events: StreamEvents, left: int, right: int) -> bool:
    return bool(events.ends[left] == events.ends[right] and events.end_ties[left] == events.end_ties[right])


# Rooms ---------------------------------------------------------------------------------------------------------------


@step
def _open_rooms(
    machine: SharedMachine, coming: Coming, instances: SharedInstances, scope: ProgramScope, event: int
) -> int:
    """Find the instances that an event serves, in the rooms of its values; how many visits it makes, the root first."""
    shapes, pool = machine.shapes, instances.pool
    values, known = coming.atoms.values, coming.atoms.known
    instances.visits[0] = -1
    visits = 1
    for kind in range(shapes.rooms.shape[0]):
        if instances.occupied[kind] == 0:
            continue
        columns, compared = shapes.rooms[kind, BY], shapes.rooms[kind, ORDERED_BY]
        room, has_values = mix(np.uint64(kind + 1)), True
        for place in range(shapes.sets[columns], shapes.sets[columns + 1]):
            column = shapes.columns[place]
            has_values &= known[event, column] == 1
            room = mix(room ^ np.uint64(values[event, column]))
        if not has_values or (compared >= 0 and known[event, compared] == 0):
            continue
        instances.counters[OPENED] += 1
        if compared < 0:
            instance = pool.heads[np.int64(room & np.uint64(pool.heads.size - 1))]
            while instance >= 0:
                following = pool.below[instance]
                if pool.rooms[instance] == room and _is_served(machine, coming, instances, scope, kind, instance):
                    instances.visits[visits] = instance
                    visits += 1
                instance = following
            continue
        value = values[event, compared] if shapes.rooms[kind, LESS] == 0 else ~values[event, compared]
        instance = first_in_order(instances.ordered, pool.rooms, room)
        while instance >= 0 and pool.rooms[instance] == room and instances.ordered.bounds[instance] <= value:
            following = next_in_order(instances.ordered, instance)
            if _is_served(machine, coming, instances, scope, kind, instance):
                instances.visits[visits] = instance
                visits += 1
            instance = following
    return visits


@step
def _is_served(
    machine: SharedMachine,
    coming: Coming,
    instances: SharedInstances,
    scope: ProgramScope,
    kind: int,
    instance: int,
) -> bool:
    """Whether the newest event serves an instance, which leaves after this step unless its node says that it stays.

    One of no use leaves now.
    """
    pool, events, event = instances.pool, coming.events, scope.bindings[0, 0]
    shape, own = machine.shapes.nodes[instances.shapes[instance]], instances.own[instance]
    served = shape[ROOM] == kind
    instances.counters[TOUCHED] += served
    most = machine.graph.constants[own + shape[MOST]] if shape[MOST] >= 0 else -1
    if served and is_over(pool.cells[instance, START], events.ends[event], most):
        instances.counters[EXPIRED] += 1
        _leave_room(machine, instances, instance)
        served = False
    end, start = pool.cells[instance, END], events.starts[event]
    served = served and (end < start or (end == start and pool.cells[instance, END_TIE] < events.start_ties[event]))
    place = machine.shapes.sets[machine.shapes.rooms[kind, BY]]
    if served:
        for key in range(shape[KEYS], shape[KEYS_END]):
            value, _ = _value_of(machine, pool, key, own, instance)
            served &= value == coming.atoms.values[event, machine.shapes.columns[place]]
            place += 1
    tested = machine.shapes.parts[shape[FILTER]]
    if served and tested[0] < tested[1]:
        served = _holds(machine.shapes.words, tested, machine.graph.constants, machine.reals, own, scope, instance)
    if served and shape[STAYS] == 0 and pool.stamps[instance] != pool.sizes[STEPS]:
        pool.stamps[instance] = pool.sizes[STEPS]
        pool.served[pool.sizes[SERVED]] = instance
        pool.sizes[SERVED] += 1
    return bool(served)


@compiled
def _holds(
    words: Ints, part: Ints, constants: Ints, reals: Reals, first: int, scope: ProgramScope, instance: int
) -> bool:
    """Whether a program holds of an instance with the newest event; one without tests leaves its value.

    part    a row of `SharedShapes.parts`
    first   where the constants of its node or edge are: every query has its own
    """
    scope = borrowed(scope)
    code = Code(
        words[part[0] : part[1]],
        constants[first + part[2] : first + part[3]],
        reals[first + part[4] : first + part[5]],
    )
    return holds(code, scope, 0, instance)


# Edges ---------------------------------------------------------------------------------------------------------------


@step
def _traverse(
    machine: SharedMachine,
    coming: Coming,
    instances: SharedInstances,
    scope: ProgramScope,
    visiting: tuple[int, int, int],
    ahead: LookAhead,
) -> bool:
    """Let an event traverse the edges of the root, and of the nodes of those that it serves; False: no room is left.

    visiting   the event, how many visits it makes, and its row in what was looked up beforehand
    """
    graph, shapes = machine.graph, machine.shapes
    event, visits, row = visiting
    has_room, looked_at, turn = True, 0, 0
    _look_at_visits(machine, coming.atoms, instances, event, visits)
    for visit in range(visits):
        instance = instances.visits[visit]
        node = instances.pool.at[instance] if instance >= 0 else ROOT
        rebind = shapes.nodes[instances.shapes[instance], REBIND] if instance >= 0 else -1
        access = graph.nodes[node, ACCESSES]
        edge, columns, value_hash = -1, 0, np.uint64(0)
        run, at, end = 0, 0, 0
        while rebind >= 0 or at < end or edge != -1 or access >= 0:
            shape, constants, target, own, candidate = -1, 0, 0, 0, -1
            if rebind >= 0:
                shape, constants, target = rebind, instances.own[instance], node
                own, rebind = constants, -1
            elif at < end:
                candidate = at
                looked_at += 1
                at = next_in_run(graph, run, at + 1, end, coming.atoms.values[event])
            elif edge >= 0:
                # Most edges of a bucket are passed over here.
                while edge >= 0 and candidate < 0:
                    entry = graph.entries[edge]
                    value = coming.atoms.values[event, first_range(entry[RANGED])]
                    if entry[HASH] == np.int64(value_hash) and entry[LOW] <= value and value <= entry[HIGH]:
                        candidate = edge
                    edge = lower(entry[LINKS])
                    looked_at += 1
            elif edge < -1:
                run = -2 - edge
                edge = graph.runs[run, NEXT_IN_BUCKET]
                at, end = graph.runs[run, FIRST], end_in_run(graph, run, coming.atoms.values[event])
                if graph.entries[at, HASH] != np.int64(value_hash):
                    end = at
                at = next_in_run(graph, run, at, end, coming.atoms.values[event])
            else:
                columns = graph.accesses[access, COLUMN_SET]
                if instance < 0:
                    edge, value_hash = ahead.heads[row, turn], ahead.hashes[row, turn]
                    turn += 1
                elif access == instances.looked_up[visit, 0]:
                    edge, value_hash = instances.looked_up[visit, 1], np.uint64(instances.looked_up[visit, 2])
                else:
                    value_hash, has_values = _hash_of(machine, coming.atoms, access, node, event)
                    edge = graph.heads[bucket_of(value_hash, graph.heads.size)] if has_values else -1
                access = graph.accesses[access, NEXT_ACCESS]
            if candidate >= 0:
                entry = graph.entries[candidate]
                if _fits(graph, shapes, entry, columns, coming.atoms, event):
                    shape, constants = upper(entry[TARGET]), upper(entry[LINKS])
                    target, own = lower(entry[TARGET]), upper(entry[RANGED])
            if shape >= 0:
                has_room &= _fire(machine, coming.events, instances, scope, (shape, constants, target, own), instance)
    instances.counters[LOOKED_AT] += looked_at
    return has_room


@inlined
def _hash_of(machine: SharedMachine, atoms: AtomColumns, access: int, node: int, event: int) -> tuple[np.uint64, bool]:
    """The hash by which edges of a node are found for an event, and whether there can be any."""
    shapes, columns = machine.shapes, machine.graph.accesses[access, COLUMN_SET]
    value_hash = access_hash(node, columns)
    has_values = machine.graph.accesses[access, LEAVING] > 0
    for place in range(shapes.sets[columns], shapes.sets[columns + 1]):
        column = shapes.columns[place]
        has_values &= atoms.known[event, column] == 1
        value_hash = with_value(value_hash, atoms.values[event, column])
    return value_hash, has_values


@step
def _look_at_visits(
    machine: SharedMachine, atoms: AtomColumns, instances: SharedInstances, event: int, visits: int
) -> None:
    """Find where edges begin at the first access of all nodes that an event visits, as for the root (`_look_ahead`)."""
    graph, looked_up = machine.graph, instances.looked_up
    for visit in range(1, visits):
        looked_up[visit, 0] = graph.nodes[instances.pool.at[instances.visits[visit]], ACCESSES]
    for visit in range(1, visits):
        looked_up[visit, 1] = -1
        if looked_up[visit, 0] >= 0:
            node = instances.pool.at[instances.visits[visit]]
            value_hash, has_values = _hash_of(machine, atoms, looked_up[visit, 0], node, event)
            looked_up[visit, 2] = np.int64(value_hash)
            if has_values:
                looked_up[visit, 1] = bucket_of(value_hash, graph.heads.size)
    touched = np.int64(0)
    for visit in range(1, visits):
        if looked_up[visit, 1] >= 0:
            looked_up[visit, 1] = graph.heads[looked_up[visit, 1]]
    for visit in range(1, visits):
        if looked_up[visit, 1] >= 0:
            touched ^= graph.entries[looked_up[visit, 1], HASH]
    instances.counters[TOUCHED_AHEAD] = touched


@step
def _count_root_accesses(graph: SharedGraph) -> int:
    number, access = 0, graph.nodes[ROOT, ACCESSES]
    while access >= 0:
        number += 1
        access = graph.accesses[access, NEXT_ACCESS]
    return number


@compiled
def _look_ahead(
    machine: SharedMachine, atoms: AtomColumns, ahead: LookAhead, first: int, last: int, counters: Ints
) -> None:
    """Find where edges of the root begin for some events.

    Nothing depends on these look-ups: the processor waits for many of them at once, where one event after the other
    would wait for each. Most of an event's time is waiting for memory.
    """
    machine, atoms, ahead = borrowed(machine), borrowed(atoms), borrowed(ahead)
    graph = machine.graph
    for event in range(first, last):
        turn, access = 0, graph.nodes[ROOT, ACCESSES]
        while access >= 0:
            value_hash, has_values = _hash_of(machine, atoms, access, ROOT, event)
            ahead.hashes[event - first, turn] = value_hash
            ahead.heads[event - first, turn] = bucket_of(value_hash, graph.heads.size) if has_values else -1
            turn += 1
            access = graph.accesses[access, NEXT_ACCESS]
    for row in range(last - first):
        for turn in range(ahead.heads.shape[1]):
            if ahead.heads[row, turn] >= 0:
                ahead.heads[row, turn] = graph.heads[ahead.heads[row, turn]]
    # What is read here will be there when it is needed.
    touched = np.int64(0)
    for row in range(last - first):
        for turn in range(ahead.heads.shape[1]):
            edge = ahead.heads[row, turn]
            if edge >= 0:
                touched ^= graph.entries[edge, HASH]
                touched ^= graph.entries[max(edge - 1, 0), HASH]
    counters[TOUCHED_AHEAD] = touched


@step
def _fits(graph: SharedGraph, shapes: SharedShapes, entry: Ints, columns: int, atoms: AtomColumns, event: int) -> bool:
    """Whether an event has values within the ranges of an edge, and just those that it tests for equality.

    An edge of another set of columns may have the same hash.
    """
    first, second = first_range(entry[RANGED]), second_range(entry[RANGED])
    value, other = atoms.values[event, first], atoms.values[event, second]
    fits = entry[LOW] <= value and value <= entry[HIGH] and entry[OTHER_LOW] <= other and other <= entry[OTHER_HIGH]
    # Nobody needs an edge of a run any more that leads nowhere.
    if fits and lower(entry[TARGET]) >= 0:
        fits = shapes.edges[upper(entry[TARGET]), FOUND_BY] == columns
        fits = fits and atoms.known[event, first] == 1 and atoms.known[event, second] == 1
        constant = upper(entry[LINKS])
        for place in range(shapes.sets[columns], shapes.sets[columns + 1]):
            fits &= graph.constants[constant] == atoms.values[event, shapes.columns[place]]
            constant += 1
        return bool(fits)
    return False


@step
def _fire(
    machine: SharedMachine,
    events: StreamEvents,
    instances: SharedInstances,
    scope: ProgramScope,
    edge: tuple[int, int, int, int],
    instance: int,
) -> bool:
    """Make a new instance of one (−1: of none) and the newest event, if the test of an edge holds; False: no room.

    edge   its shape, where its constants are, the node that it enters, and where the constants of that are
    """
    pool, event = instances.pool, scope.bindings[0, 0]
    row, constants, before = machine.shapes.edges[edge[0]], edge[1], max(instance, 0)
    tested, fires = machine.shapes.parts[row[TEST]], True
    if tested[0] < tested[1]:
        fires = _holds(machine.shapes.words, tested, machine.graph.constants, machine.reals, constants, scope, before)
    has_room = not fires or pool.sizes[FREE] > 0
    if fires and has_room:
        pool.sizes[FREE] -= 1
        new = pool.free[pool.sizes[FREE]]
        pool.new[pool.sizes[NEW]] = new
        pool.sizes[NEW] += 1
        pool.at[new], instances.shapes[new], instances.own[new] = edge[2], row[ENTERS], edge[3]
        instances.counters[FIRED] += 1
        instances.begun[new] = events.ends[event] if instance < 0 else instances.begun[before]
        pool.cells[new, START] = events.starts[event] if instance < 0 else pool.cells[before, START]
        pool.cells[new, START_TIE] = events.start_ties[event] if instance < 0 else pool.cells[before, START_TIE]
        pool.cells[new, END] = events.ends[event]
        pool.cells[new, END_TIE] = events.end_ties[event]
        for place in range(row[ASSIGNMENTS], row[ASSIGNMENTS_END]):
            _assign(machine, scope, new, place, constants, before)
    return bool(has_room)


@inlined
def _assign(machine: SharedMachine, scope: ProgramScope, new: int, place: int, constants: int, before: int) -> None:
    """Give a new instance one of its values."""
    event, groups = scope.bindings[0, 0], scope.groups
    cell, kind = machine.shapes.assignments[place, 0], machine.shapes.assignments[place, 1]
    source, column = machine.shapes.assignments[place, 2], machine.shapes.assignments[place, 3]
    if kind == FROM_CELL:
        groups.ints[new, cell] = groups.ints[before, source]
        groups.states[new, cell] = groups.states[before, source]
    elif kind == FROM_INTS:
        put_int(groups, new, cell, scope.events.states[column, event], scope.events.ints[source, event])
    elif kind == FROM_REALS:
        put_real(groups, new, cell, scope.events.states[column, event], scope.events.reals[source, event])
    elif kind == NOTHING:
        put_int(groups, new, cell, op.NULL, 0)
    else:
        part = machine.shapes.parts[source]
        _holds(machine.shapes.words, part, machine.graph.constants, machine.reals, constants, scope, before)
        if kind == COMPUTED_REAL:
            put_real(groups, new, cell, scope.stack.states[0], scope.stack.reals[0])
        else:
            put_int(groups, new, cell, scope.stack.states[0], scope.stack.ints[0])


@inlined
def _value_of(machine: SharedMachine, pool: Instances, key: int, own: int, instance: int) -> tuple[int, bool]:
    """A value that an instance waits for, as events have it among their atoms, and whether it can be equal to any."""
    return _value(machine, pool, machine.shapes.keys[key, 0], machine.shapes.keys[key, 1], own, instance)


@inlined
def _value(machine: SharedMachine, pool: Instances, kind: int, place: int, own: int, instance: int) -> tuple[int, bool]:
    if kind == OF_NODE:
        return machine.graph.constants[own + place], True
    value = pool.cells[instance, place]
    known = pool.states[instance, place] == op.VALUE
    if kind == OF_REAL_CELL:
        known = known and value != NAN_BITS
        value = in_order(value)
    return value, known


@inlined
def in_order(bits: int) -> int:
    """The bits of a real as an integer: greater reals are greater integers."""
    return bits if bits >= 0 else int(np.int64(-(2**63)) - bits - 1)


# After a step --------------------------------------------------------------------------------------------------------


@step
def _results_fit(machine: SharedMachine, instances: SharedInstances, results: SharedResults) -> bool:
    pool = instances.pool
    number = pool.sizes[RESULTS]
    for place in range(pool.sizes[NEW]):
        number += machine.shapes.nodes[instances.shapes[pool.new[place]], IS_FINAL]
    return bool(number <= results.nodes.size)


@step
def _commit(machine: SharedMachine, instances: SharedInstances, results: SharedResults) -> None:
    """Let served instances leave, and new ones wait or become results; of equal ones at a node one is kept."""
    pool = instances.pool
    for place in range(pool.sizes[SERVED]):
        instances.counters[SERVED_COUNT] += 1
        _leave_room(machine, instances, pool.served[place])
    several = _share_a_node(instances)
    for place in range(pool.sizes[NEW]):
        instance = pool.new[place]
        width = machine.shapes.nodes[instances.shapes[instance], WIDTH]
        same = equal_one(pool, instance, width) if several else -1
        if same >= 0:
            instances.begun[same] = max(instances.begun[same], instances.begun[instance])
            pool.new[place] = -1
            free(pool, instance)
    for place in range(pool.sizes[NEW]):
        if pool.new[place] >= 0:
            _settle(machine, instances, results, pool.new[place])
    pool.sizes[NEW] = 0
    pool.sizes[SERVED] = 0


@step
def _share_a_node(instances: SharedInstances) -> bool:
    """Whether two new instances are at one node, or there are very many of them."""
    pool, noted = instances.pool, instances.noted
    now, mask = pool.sizes[STEPS], noted.shape[0] - 1
    several = bool(pool.sizes[NEW] > noted.shape[0] >> 1)
    place = 0
    while not several and place < pool.sizes[NEW]:
        node = pool.at[pool.new[place]]
        slot = (np.int64(node) * 0x9E3779B1) >> 7 & mask
        while noted[slot, 0] == now and noted[slot, 1] != node:
            slot = slot + 1 & mask
        several = bool(noted[slot, 0] == now)
        noted[slot, 0], noted[slot, 1] = now, node
        place += 1
    return several


@inlined
def _settle(machine: SharedMachine, instances: SharedInstances, results: SharedResults, instance: int) -> None:
    """Let a new instance wait, or become a result."""
    pool = instances.pool
    shape = machine.shapes.nodes[instances.shapes[instance]]
    instances.counters[MADE] += 1
    if shape[IS_FINAL] == 1:
        at = pool.sizes[RESULTS]
        for cell in range(shape[WIDTH]):
            results.cells[at, cell] = pool.cells[instance, cell]
            results.states[at, cell] = pool.states[instance, cell]
        results.nodes[at] = pool.at[instance]
        results.begun[at] = instances.begun[instance]
        pool.sizes[RESULTS] += 1
        free(pool, instance)
        return
    if not _enter_room(machine, instances, instance):
        # No event is equal to NULL, or beyond it: it would wait in vain.
        free(pool, instance)


@step
def _enter_room(machine: SharedMachine, instances: SharedInstances, instance: int) -> bool:
    """Let an instance wait; False: no event could serve it."""
    shape = machine.shapes.nodes[instances.shapes[instance]]
    waits, room = _room_of(machine, instances, instance)
    if shape[BOUND] < 0:
        if waits:
            enter(instances.pool, instance, room)
    else:
        bound, known = _bound_of(machine, instances, instance)
        waits = waits and known
        if waits:
            enter_in_order(instances.ordered, instances.pool.rooms, instance, room, bound)
    if waits:
        instances.occupied[shape[ROOM]] += 1
    return bool(waits)


@step
def _leave_room(machine: SharedMachine, instances: SharedInstances, instance: int) -> None:
    """Let an instance leave its room, for good."""
    shape = machine.shapes.nodes[instances.shapes[instance]]
    instances.occupied[shape[ROOM]] -= 1
    if shape[BOUND] < 0:
        leave(instances.pool, instance)
    else:
        leave_order(instances.ordered, instance)
        free(instances.pool, instance)


@inlined
def _bound_of(machine: SharedMachine, instances: SharedInstances, instance: int) -> tuple[int, bool]:
    """The least value that serves an instance, turned round where it must be less; and whether there is one."""
    shape = machine.shapes.nodes[instances.shapes[instance]]
    value, known = _value(machine, instances.pool, shape[BOUND], shape[BOUND_PLACE], instances.own[instance], instance)
    if machine.shapes.rooms[shape[ROOM], LESS] == 1:
        value = ~value
    if shape[BEYOND] == 1:
        known = known and value != LATEST
        value = value + 1 if known else value
    return value, known


@inlined
def _room_of(machine: SharedMachine, instances: SharedInstances, instance: int) -> tuple[bool, np.uint64]:
    shape = machine.shapes.nodes[instances.shapes[instance]]
    room, has_values = mix(np.uint64(shape[ROOM] + 1)), True
    for key in range(shape[KEYS], shape[KEYS_END]):
        value, known = _value_of(machine, instances.pool, key, instances.own[instance], instance)
        has_values &= known
        room = mix(room ^ np.uint64(value))
    return has_values, room


# Between calls -------------------------------------------------------------------------------------------------------


@compiled
def expire_shared(machine: SharedMachine, instances: SharedInstances, now: int) -> None:
    """Free the instances that no event which ends now or later can serve, and those at nodes that nobody needs."""
    machine, instances = borrowed(machine), borrowed(instances)
    pool = instances.pool
    for instance in range(pool.at.size):
        node = pool.at[instance]
        if node < 0:
            continue
        shape, own = machine.shapes.nodes[instances.shapes[instance]], instances.own[instance]
        most = machine.graph.constants[own + shape[MOST]] if shape[MOST] >= 0 else -1
        if machine.graph.nodes[node, USERS] == 0 or is_over(pool.cells[instance, START], now, most):
            instances.counters[EXPIRED] += 1
            _leave_room(machine, instances, instance)


@compiled
def settle_in_shared(machine: SharedMachine, instances: SharedInstances) -> None:
    """Put all instances into the buckets, which are new, or none is in one yet; nodes may have been numbered anew."""
    machine, instances = borrowed(machine), borrowed(instances)
    pool = instances.pool
    pool.heads[:] = -1
    instances.ordered.top[0] = -1
    instances.occupied[:] = 0
    for instance in range(pool.at.size):
        node = pool.at[instance]
        if node >= 0:
            instances.shapes[instance] = machine.graph.nodes[node, NODE_SHAPE]
            instances.own[instance] = machine.graph.nodes[node, OWN_CONSTANTS]
            _enter_room(machine, instances, instance)
