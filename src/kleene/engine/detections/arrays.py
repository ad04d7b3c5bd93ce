"""Detections as arrays: made of events, taken, put together, joined and ordered."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kleene.engine.state.memory import empty
from kleene.kernels.detections import DetectionArrays, EventPoints, fill_joined, order_ties
from kleene.kernels.expression import Ints


def no_detections() -> DetectionArrays:
    return _arrays([np.zeros(0, np.int64) for _ in range(4)], np.zeros(1, np.int64), [np.zeros(0, np.int64)] * 3)


def _arrays(moments: Sequence[Ints], offsets: Ints, references: Sequence[Ints]) -> DetectionArrays:
    starts, start_ties, ends, end_ties = moments
    rows, aliases, later = references
    return DetectionArrays(starts, start_ties, ends, end_ties, offsets, rows, aliases, later)


def of_events(rows: Ints, alias: int, points: EventPoints) -> DetectionArrays:
    """A detection for each of some events, by their ends."""
    size = len(rows)
    return DetectionArrays(
        points.starts[rows],
        points.start_ties[rows],
        points.ends[rows],
        points.end_ties[rows],
        np.arange(size + 1, dtype=np.int64),
        rows,
        np.full(size, alias, np.int64),
        np.zeros(size, np.int64),
    )


def size_of(detections: DetectionArrays) -> int:
    return len(detections.ends)


def taken(detections: DetectionArrays, places: Ints) -> DetectionArrays:
    """These detections, in this order."""
    offsets, at = _references(detections, places)
    return _arrays([array[places] for array in detections[:4]], offsets, [array[at] for array in detections[5:]])


def _references(detections: DetectionArrays, places: Ints) -> tuple[Ints, Ints]:
    sizes = np.diff(detections.offsets)[places]
    offsets = np.zeros(len(places) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    if len(detections.rows) == size_of(detections):
        return offsets, places
    at = np.repeat(detections.offsets[places] - offsets[:-1], sizes) + np.arange(offsets[-1])
    return offsets, at


def together(parts: Sequence[DetectionArrays]) -> DetectionArrays:
    """The detections of all parts, one part after another."""
    some = [part for part in parts if size_of(part)]
    if len(some) < 2:
        return some[0] if some else no_detections()
    shifts = np.cumsum([0, *(len(part.rows) for part in some)])
    offsets = [part.offsets[:-1] + shift for part, shift in zip(some, shifts, strict=False)]
    columns = [np.concatenate([part[place] for part in some]) for place in range(len(some[0])) if place != 4]
    return _arrays(columns[:4], np.concatenate([*offsets, shifts[-1:]]), columns[4:])


def merged(parts: Sequence[DetectionArrays]) -> DetectionArrays:
    """The detections of all parts by their ends."""
    some = [part for part in parts if size_of(part)]
    every = together(some)
    return every if len(some) < 2 else taken(every, by_end(every))


def by_end(detections: DetectionArrays) -> Ints:
    order: Ints = np.lexsort((detections.end_ties, detections.ends))
    return order


def joined(lefts: DetectionArrays, rights: DetectionArrays, pairs: Ints) -> DetectionArrays:
    """Each pair as one detection."""
    number = len(pairs)
    sizes = np.diff(lefts.offsets)[pairs[:, 0]] + np.diff(rights.offsets)[pairs[:, 1]]
    offsets = np.zeros(number + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    references = int(offsets[-1])
    moments = [empty(number, np.int64) for _ in range(4)]
    out = _arrays(moments, offsets, [empty(references, np.int64) for _ in range(3)])
    fill_joined(lefts, rights, pairs, offsets, out)
    return out


def in_history_order(detections: DetectionArrays, points: EventPoints) -> tuple[Ints, Ints]:
    """Detections, given by their ends, in the order of their histories; and the rank of each, equal for equal ones."""
    size = size_of(detections)
    order = np.arange(size, dtype=np.int64)
    same = (detections.ends[1:] == detections.ends[:-1]) & (detections.end_ties[1:] == detections.end_ties[:-1])
    if not same.any():
        return order, order
    ranks = empty(size, np.int64)
    order_ties(detections, points, order, ranks)
    return order, ranks
