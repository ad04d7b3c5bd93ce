"""One setting of a figure of W6: the clock's and the cost model's view of every plan, and what follows of both (G9)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from bench.measure import Verdict
from bench.running import bound
from bench.tree_plans import MOST, SECONDS, Way, chosen, estimates, lines, throughputs, true_statistics
from bench.tree_workloads import RECORDS, Stocks
from kleene.pattern.query import BoundQuery

# Plans whose rates differ by less are not told apart.
APART = 0.10
MOST_SLOWER = 0.10
# Statistics are taken from so many events.
SEEN = 20_000
NAME, CELL = 23, 11


@dataclass(frozen=True)
class Size:
    """How long the runs may be, in seconds and in events; and the web log, in records."""

    seconds: float = SECONDS
    most: int = MOST
    records: int = RECORDS


FULL = Size()
QUICK = Size(seconds=0.0, most=600, records=20_000)


@dataclass(frozen=True)
class Point:
    """Thousand events a second of every way, and 1 / estimated cost of the trees among them, in millionths."""

    name: str
    events: int
    rates: Mapping[str, float]
    estimated: Mapping[str, float]
    # The plan that the optimiser takes.
    chosen: str

    @property
    def fastest(self) -> str:
        """Of the trees."""
        return max(self.estimated, key=lambda name: self.rates[name])

    @property
    def slower(self) -> float:
        """By how much the optimiser's plan is slower than the fastest tree."""
        return 1 - self.rates[self.chosen] / self.rates[self.fastest]

    @property
    def pairs(self) -> list[tuple[str, str, bool]]:
        """The trees that the clock tells apart, the faster first, and whether the model ranks them alike."""
        found = []
        for pair in combinations(self.estimated, 2):
            fast, slow = sorted(pair, key=lambda name: self.rates[name], reverse=True)
            if self.rates[slow] < (1 - APART) * self.rates[fast]:
                found.append((fast, slow, self.estimated[fast] > self.estimated[slow]))
        return found

    def line(self) -> str:
        rates = "".join(f"{rate:{CELL}.1f}" for rate in self.rates.values())
        model = "".join(f"{estimate:{CELL},.0f}" for estimate in self.estimated.values())
        return f"{self.name:{NAME}}{rates}  |{model}   {self.chosen:11}{self.events:8,}"


@dataclass(frozen=True)
class Figure:
    """A query, and the trees that it is run as besides the executors of lines."""

    title: str
    query: str
    trees: Callable[[BoundQuery], dict[str, Way]]

    def over(self, streams: Mapping[str, Stocks], size: Size, repeats: int) -> list[Point]:
        print(f"\n{self.title}\n{self.query}")
        points: list[Point] = []
        for name, stream in streams.items():
            point = self.point(name, stream, size, repeats)
            if not points:
                print(_head(point))
            print(point.line(), flush=True)
            points.append(point)
        return points

    def point(self, name: str, stream: Stocks, size: Size, repeats: int) -> Point:
        table = stream.table(SEEN)
        query = bound(table, self.query)
        statistics = true_statistics(query, table)
        ways = self.trees(query)
        rates, events = throughputs({**ways, **lines(query)}, stream.table, size.seconds, size.most, repeats)
        return Point(name, events, rates, estimates(ways, statistics), chosen(ways, table))


def _head(point: Point) -> str:
    rates = "".join(f"{name:>{CELL}}" for name in point.rates)
    model = "".join(f"{name:>{CELL}}" for name in point.estimated)
    return f"{'':{NAME}}{rates}  |{model}   {'chosen':11}{'events':>8}"


def agreement(points: Sequence[Point]) -> str:
    """How often the model ranks two plans as the clock does, where the clock tells them apart."""
    found = [(point, *pair) for point in points for pair in point.pairs]
    wrong = [f"{point.name}: {fast} over {slow}" for point, fast, slow, same in found if not same]
    text = f"the cost model ranks {len(found) - len(wrong)} of {len(found)} pairs of plans as the clock does"
    return f"{text} (pairs over 10 % apart)" + (f"; not {'; '.join(wrong)}" if wrong else "")


def judged(points: Sequence[Point]) -> Verdict:
    """G9: the optimiser's plan beside the best of all."""
    good = [point for point in points if point.slower <= MOST_SLOWER]
    worst = max(points, key=lambda point: point.slower)
    text = f"optimiser's plan within 10 % of the best tree in {len(good)} of {len(points)} settings"
    if worst.slower > 0:
        text += f"; furthest: {worst.name}, {worst.chosen} {worst.slower:.0%} slower than {worst.fastest}"
    return Verdict("G9", len(good) == len(points), text)
