"""The edges that an event traverses (CESAR §4.3), found by its own values: those of the root for many events ahead."""

from __future__ import annotations

import numpy as np

from kleene.kernels import opcodes as op
from kleene.kernels.expression import Ints, ProgramScope
from kleene.kernels.jit import borrowed, compiled, inlined, step
from kleene.kernels.shared_machine import (
    ASSIGNMENTS,
    ASSIGNMENTS_END,
    ENTERS,
    FIRED,
    FOUND_BY,
    FROM_CELLS,
    FROM_EVENT,
    FROM_NOWHERE,
    FROM_REAL_PROGRAM,
    LOOKED_AT,
    REBIND,
    TEST,
    TOUCHED_AHEAD,
    AtomColumns,
    Coming,
    EventCells,
    LookAhead,
    SharedInstances,
    SharedMachine,
    SharedShapes,
)
from kleene.kernels.shared_nodes import (
    FIRST,
    HASH,
    HIGH,
    LEADS_TO,
    LINKS,
    LOW,
    NEXT_IN_BUCKET,
    OTHER_HIGH,
    OTHER_LOW,
    RANGED,
    ROOT,
    TARGET,
    SharedGraph,
    access_hash,
    bucket_of,
    columns_of,
    end_in_run,
    first_range,
    lower,
    next_access,
    next_in_run,
    second_range,
    upper,
    with_value,
)
from kleene.kernels.shared_rooms import holds_of, is_late
from kleene.kernels.stream_instances import (
    END,
    END_TIE,
    FREE,
    NEW,
    START,
    START_TIE,
    put_int,
    put_real,
)


@step
def traverse(
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
        access = graph.nodes[ROOT, LEADS_TO] if instance < 0 else instances.looked_up[visit, 0]
        edge, columns, value_hash = -1, 0, np.uint64(0)
        run, at, end = 0, 0, 0
        while rebind >= 0 or at < end or edge != -1 or access != -1:
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
                columns = columns_of(graph, access)
                if instance < 0:
                    edge, value_hash = ahead.heads[row, turn], ahead.hashes[row, turn]
                    turn += 1
                elif access == instances.looked_up[visit, 0]:
                    edge, value_hash = instances.looked_up[visit, 1], np.uint64(instances.looked_up[visit, 2])
                else:
                    value_hash, has_values = _hash_of(machine, coming.atoms, columns, node, event)
                    edge = graph.heads[bucket_of(value_hash, graph.heads.size)] if has_values else -1
                access = next_access(graph, access)
            if candidate >= 0:
                entry = graph.entries[candidate]
                if _fits(graph, shapes, entry, columns, coming.atoms, event):
                    shape, constants = upper(entry[TARGET]), upper(entry[LINKS])
                    target, own = lower(entry[TARGET]), upper(entry[RANGED])
            if shape >= 0:
                has_room &= _fire(machine, coming, instances, scope, (shape, constants, target, own), instance)
    instances.counters[LOOKED_AT] += looked_at
    return has_room


@inlined
def _hash_of(machine: SharedMachine, atoms: AtomColumns, columns: int, node: int, event: int) -> tuple[np.uint64, bool]:
    """The hash by which edges of a node are found for an event, and whether there can be any."""
    shapes = machine.shapes
    value_hash, has_values = access_hash(node, columns), True
    for place in range(shapes.sets[columns], shapes.sets[columns + 1]):
        column = shapes.columns[place]
        has_values &= atoms.known[event, column] == 1
        value_hash = with_value(value_hash, atoms.values[event, column])
    return value_hash, has_values


@step
def _look_at_visits(
    machine: SharedMachine, atoms: AtomColumns, instances: SharedInstances, event: int, visits: int
) -> None:
    """Find where edges begin at the first access of all nodes that an event visits, as for the root (`look_ahead`)."""
    graph, looked_up = machine.graph, instances.looked_up
    for visit in range(1, visits):
        looked_up[visit, 0] = graph.nodes[instances.pool.at[instances.visits[visit]], LEADS_TO]
    for visit in range(1, visits):
        looked_up[visit, 1] = -1
        if looked_up[visit, 0] != -1:
            node, columns = instances.pool.at[instances.visits[visit]], columns_of(graph, looked_up[visit, 0])
            value_hash, has_values = _hash_of(machine, atoms, columns, node, event)
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
def count_root_accesses(graph: SharedGraph) -> int:
    number, access = 0, graph.nodes[ROOT, LEADS_TO]
    while access != -1:
        number += 1
        access = next_access(graph, access)
    return number


@compiled
def look_ahead(
    machine: SharedMachine, atoms: AtomColumns, ahead: LookAhead, first: int, last: int, counters: Ints
) -> None:
    """Find where edges of the root begin for some events."""
    machine, atoms, ahead = borrowed(machine), borrowed(atoms), borrowed(ahead)
    graph = machine.graph
    for event in range(first, last):
        turn, access = 0, graph.nodes[ROOT, LEADS_TO]
        while access != -1:
            value_hash, has_values = _hash_of(machine, atoms, columns_of(graph, access), ROOT, event)
            ahead.hashes[event - first, turn] = value_hash
            ahead.heads[event - first, turn] = bucket_of(value_hash, graph.heads.size) if has_values else -1
            turn += 1
            access = next_access(graph, access)
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
                touched ^= graph.entries[edge, HASH] ^ graph.entries[max(edge - 1, 0), HASH]
                touched ^= graph.entries[max(edge - 2, 0), HASH] ^ graph.entries[max(edge - 3, 0), HASH]
    for row in range(last - first):
        for turn in range(ahead.heads.shape[1]):
            edge = ahead.heads[row, turn]
            if edge >= 0:
                touched ^= graph.constants[upper(graph.entries[edge, LINKS])]
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
    coming: Coming,
    instances: SharedInstances,
    scope: ProgramScope,
    edge: tuple[int, int, int, int],
    instance: int,
) -> bool:
    """Make a new instance of one (−1: of none) and the newest event, if the test of an edge holds; False: no room.

    One that is too old already to be served is not made.

    edge   its shape, where its constants are, the node that it enters, and where the constants of that are
    """
    pool, events, event = instances.pool, coming.events, scope.bindings[0, 0]
    row, constants, before = machine.shapes.edges[edge[0]], edge[1], max(instance, 0)
    start = events.starts[event] if instance < 0 else pool.cells[before, START]
    fires = not is_late(machine, machine.shapes.nodes[row[ENTERS]], edge[3], start, events.ends[event])
    tested = machine.shapes.parts[row[TEST]]
    if fires and tested[0] < tested[1]:
        fires = holds_of(machine.shapes.words, tested, machine.graph.constants, machine.reals, constants, scope, before)
    has_room = not fires or pool.sizes[FREE] > 0
    if fires and has_room:
        pool.sizes[FREE] -= 1
        new = pool.free[pool.sizes[FREE]]
        pool.new[pool.sizes[NEW]] = new
        pool.sizes[NEW] += 1
        pool.at[new], instances.shapes[new], instances.own[new] = edge[2], row[ENTERS], edge[3]
        instances.counters[FIRED] += 1
        instances.begun[new] = events.ends[event] if instance < 0 else instances.begun[before]
        pool.cells[new, START] = start
        pool.cells[new, START_TIE] = events.start_ties[event] if instance < 0 else pool.cells[before, START_TIE]
        pool.cells[new, END] = events.ends[event]
        pool.cells[new, END_TIE] = events.end_ties[event]
        for place in range(row[ASSIGNMENTS], row[ASSIGNMENTS_END]):
            _assign(machine, coming.cells, scope, new, place, constants, before)
    return bool(has_room)


@inlined
def _assign(
    machine: SharedMachine,
    event_cells: EventCells,
    scope: ProgramScope,
    new: int,
    place: int,
    constants: int,
    before: int,
) -> None:
    """Give a new instance some of its values."""
    event, groups = scope.bindings[0, 0], scope.groups
    assignment = machine.shapes.assignments[place]
    kind, first, source, size = assignment[0], assignment[1], assignment[2], assignment[3]
    if kind == FROM_CELLS:
        for cell in range(size):
            groups.ints[new, first + cell] = groups.ints[before, source + cell]
        for cell in range(size):
            groups.states[new, first + cell] = groups.states[before, source + cell]
    elif kind == FROM_EVENT:
        for cell in range(size):
            groups.ints[new, first + cell] = event_cells.values[event, source + cell]
        for cell in range(size):
            groups.states[new, first + cell] = event_cells.states[event, source + cell]
    elif kind == FROM_NOWHERE:
        put_int(groups, new, first, op.NULL, 0)
    else:
        part = machine.shapes.parts[source]
        holds_of(machine.shapes.words, part, machine.graph.constants, machine.reals, constants, scope, before)
        if kind == FROM_REAL_PROGRAM:
            put_real(groups, new, first, scope.stack.states[0], scope.stack.reals[0])
        else:
            put_int(groups, new, first, scope.stack.states[0], scope.stack.ints[0])
