"""Where time is cut: slices of about the same number of events, each much longer than what it needs from around it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import functions

from kleene.errors import BadDivision
from kleene.frames.arrow import as_integers
from kleene.frames.numbers import to_numpy
from kleene.spark.interpreter import in_tasks
from kleene.spark.packing import Slices
from kleene.spark.routing import ByTime
from kleene.spark.sending import Sent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Ints = npt.NDArray[np.int64]

# Time is known at so many evenly filled cuts, each at most this share of all events beside its place.
_CUTS, _ACCURACY = 1024, 100_000
# A slice of fewer events is not worth a task's while; one of more takes long.
_LEAST_EVENTS, _MOST_EVENTS = 10_000, 1 << 18
# A slice is at least so many times as long as what it needs from around it, or most work would be done twice.
_LEAST_LENGTH = 2
# More slices than this are asked for by mistake.
_MOST_SLICES = 100_000


def slices_of(events: DataFrame, time: str, route: ByTime, *, width: int | None, tasks: int) -> Slices:
    """How the events of a query are cut; looks at their times once, or twice where events are counted.

    time    the name of the column of times
    width   how long slices are, in steps of time, or events for a count window; None: chosen
    tasks   how many can be expected to run side by side
    """
    around = max(route.before, route.after)
    count, times = times_of(events, time)
    if count == 0:
        return Slices((), route.before, route.after)
    if route.events:
        least = max(width or max(_LEAST_LENGTH * around, _LEAST_EVENTS), around)
        cuts = _cuts(times, count // least)
        bounds = _by_number(numbers_of(events, time, cuts), cuts, least)
        # A neighbour holds all that a slice needs from its side.
        return Slices(tuple(bounds), min(route.before, 1), min(route.after, 1), neighbours=True)
    bounds = _by_length(times, count, around, tasks) if width is None else of_width(times, width)
    return Slices(tuple(bounds), route.before, route.after)


def times_of(events: DataFrame, time: str) -> tuple[int, Ints]:
    """How many events there are, and their times at even cuts, the first and the last included."""
    # As text: a thousand literals that are made one by one take longer to reach the JVM than the job takes.
    shares = ", ".join(f"{cut / _CUTS!r}D" for cut in range(_CUTS + 1))
    aggregates = events.agg(
        functions.count(time).alias("count"),
        functions.expr(f"percentile_approx(`{time}`, array({shares}), {_ACCURACY})").alias("times"),
    ).toArrow()
    values = aggregates.column("times").combine_chunks().flatten()
    return aggregates.column("count")[0].as_py(), np.array(as_integers(values).to_pylist(), np.int64)


def _cuts(times: Ints, number: int) -> list[int]:
    """The times at which to cut for about so many slices with about as many events each."""
    places = np.linspace(0, _CUTS, min(max(number, 1), _CUTS) + 1).astype(np.int64)
    return sorted(set(times[places[1:-1]].tolist()))


def of_width(times: Ints, width: int) -> list[int]:
    first, last = int(times[0]), int(times[-1])
    if (last - first) // width > _MOST_SLICES:
        raise BadDivision(
            f"slices of {width:,} steps would be more than {_MOST_SLICES:,}",
            hint="slice_width is in steps of the time column, which are microseconds for timestamps",
        )
    return list(range(first + width, last + 1, width))


def _by_length(times: Ints, count: int, around: int, tasks: int) -> list[int]:
    """Slices with enough events, that are long enough."""
    bounds: list[int] = []
    last = int(times[0])
    for cut in _cuts(times, max(count // _MOST_EVENTS, min(2 * tasks, count // _LEAST_EVENTS))):
        if cut - last >= _LEAST_LENGTH * around and cut > last:
            bounds.append(cut)
            last = cut
    return bounds


def _by_number(numbers: Mapping[int, int], cuts: list[int], least: int) -> list[int]:
    """Cuts between which there are at least so many events, given how many there are from cut to cut."""
    bounds, events = [], 0
    for place, cut in enumerate(cuts):
        events += numbers.get(place, 0)
        if events >= least:
            bounds.append(cut)
            events = 0
    return bounds


def numbers_of(events: DataFrame, time: str, cuts: list[int]) -> Mapping[int, int]:
    """How many events there are before the first cut (0), from it to the second (1), …; exact."""
    counted = in_tasks(events.select(time), Sent(counter, cuts), "slice bigint, events bigint")
    totals = counted.groupBy("slice").agg(functions.sum("events")).toArrow()
    return dict(zip(*(column.to_pylist() for column in totals.columns), strict=True))


def counter(cuts: list[int]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that counts the times of a task between cuts."""

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        total = np.zeros(len(cuts) + 1, np.int64)
        for batch in batches:
            slice_numbers = np.searchsorted(cuts, to_numpy(as_integers(batch.column(0))), side="right")
            total += np.bincount(slice_numbers, minlength=len(total))
        yield pa.RecordBatch.from_pydict({"slice": np.arange(len(total)), "events": total})

    return count
