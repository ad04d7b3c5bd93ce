"""Every query of the Cayuga paper runs on a small stream; what it must give is worked out by hand beside each."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import kleene
from kleene.algebra.printing import print_stream
from kleene.algebra.query import StreamQuery
from kleene.lang.format import format_declaration

FILES = {path.stem: path for path in sorted((Path(__file__).parents[2] / "examples/papers").glob("cayuga-*.kleene"))}
BEGAN = datetime(2026, 1, 5, 9, 0)
Row = dict[str, Any]


def quotes(*listed: tuple[int, str, float] | tuple[int, str, float, int], unit: str = "minutes") -> list[Row]:
    """(time, name, price, volume) as stock quotes on timestamps."""
    return [
        {
            "ts": BEGAN + timedelta(**{unit: at}),
            "name": name,
            "price": float(price),
            "vol": volume[0] if volume else 100,
        }
        for at, name, price, *volume in listed
    ]


def ticks(*listed: tuple[int, str, float]) -> list[Row]:
    """(time, name, price) as quotes on ticks."""
    return [{"ts": at, "name": name, "price": float(price)} for at, name, price in listed]


def benchmark(*listed: tuple[int, int, int, float]) -> list[Row]:
    """(time, d1, d2, c1): events of the technical benchmark; the attributes that no formula names are 0 and 1."""
    return [
        {"ts": at, "d1": d1, "d2": d2, "d3": 0, "d4": 0, "c1": float(c1), "c2": 1.0, "c3": 1.0, "c4": 1.0}
        for at, d1, d2, c1 in listed
    ]


@dataclass(frozen=True)
class PaperRun:
    """A file on a stream: the results that it must give, each as (start, end) and some of its values."""

    rows: list[Row] | dict[str, list[Row]]
    expected: list[tuple[int, int, dict[str, Any]]]
    params: dict[str, Any] = field(default_factory=dict)
    unit: str = "minutes"
    # A file that makes a stream which this one reads.
    maker: str | None = None


THREE = {
    "primary": 7,
    **{f"second{number}": number for number in (1, 2, 3)},
    **{f"low{number}": 0 for number in (1, 2, 3)},
    **{f"high{number}": 5 for number in (1, 2, 3)},
}
# Falls to 10, rises to 13, falls to 10.5, rises to 12.5, falls to 9; three quotes from each extremum to the next.
TWO_TOPS = ticks(
    *(
        (at, "Dell", price)
        for at, price in enumerate([12, 11, 10, 11, 12, 13, 12, 11, 10.5, 11, 12, 12.5, 12, 11, 9, 10])
    )
)

RUNS = {
    "cayuga-q1-selection": PaperRun(quotes((0, "IBM", 99), (1, "IBM", 101), (2, "Dell", 150)), [(1, 1, {})]),
    # The quote of 101 meets the first MSFT, 24; that of 105 meets 30, which is not below 25, and is used up.
    "cayuga-q2-first-afterwards": PaperRun(
        quotes(
            (0, "IBM", 101), (1, "Dell", 20), (2, "MSFT", 24), (3, "MSFT", 20),
            (4, "IBM", 105), (5, "MSFT", 30), (6, "MSFT", 20),
        ),
        [(0, 2, {"S1.price": 101, "S2.price": 24})],
    ),
    # 106 > 105, 107 < 111.3, 60 > 52.5.
    "cayuga-q3-same-stock": PaperRun(
        quotes((0, "IBM", 100), (1, "Dell", 50), (2, "IBM", 106), (3, "IBM", 107), (4, "Dell", 60)),
        [(0, 2, {"S2.price": 106}), (1, 4, {"S2.price": 60})],
    ),
    # From 0 to 29 are 30 minutes, both ends included.
    "cayuga-q4-rising-ibm": PaperRun(
        quotes((0, "IBM", 10), (1, "Dell", 20), (15, "IBM", 11), (29, "IBM", 12), (31, "Dell", 21), (40, "IBM", 9)),
        [(0, 29, {"S2.price": 12})],
    ),
    "cayuga-q5-rising-any": PaperRun(
        quotes((0, "IBM", 10), (1, "Dell", 20), (15, "IBM", 11), (29, "IBM", 12), (31, "Dell", 21), (40, "IBM", 9)),
        [(0, 29, {"S1.name": "IBM"}), (1, 31, {"S1.name": "Dell"})],
    ),
    # 52 weeks are 364 days, from day 0 to day 363: (10 + 20 + 30) / 3.
    "cayuga-e2-average": PaperRun(
        quotes((0, "IBM", 10), (50, "Dell", 99), (100, "IBM", 20), (363, "IBM", 30), (364, "IBM", 25), unit="days"),
        [(0, 363, {"AVG": 20, "COUNT": 3})],
        unit="days",
    ),
    "cayuga-q6-above-average": PaperRun(
        quotes((0, "IBM", 10), (100, "IBM", 20), (363, "IBM", 30), (364, "Dell", 9), (365, "IBM", 25), unit="days"),
        [(0, 365, {"AVG": 20, "S3.price": 25})],
        unit="days",
    ),
    # Table 1 of the paper.
    "cayuga-q7-fall-then-jump": PaperRun(
        quotes(
            (10, "IBM", 90, 15000), (15, "IBM", 85, 7000), (17, "Dell", 40, 11000),
            (21, "IBM", 81, 8000), (23, "MSFT", 25, 6000), (24, "IBM", 91, 9000),
        ),
        [(10, 24, {"company": "IBM", "maxP": 90, "minP": 81, "finalP": 91})],
    ),
    # A quote of Dell stands between the first two.
    "cayuga-q8-three-quotes": PaperRun(
        quotes((0, "IBM", 9), (1, "Dell", 20), (2, "IBM", 16), (3, "IBM", 9), (4, "IBM", 16), (5, "IBM", 14)),
        [(3, 5, {"S1.price": 9, "S2.price": 16, "S3.price": 14})],
    ),
    # Figure 1: e2 overlaps e1, e3 ends after e4, e5 comes later.
    "cayuga-s22-sequence": PaperRun(
        {
            "S1": [{"event": "e1", "began": 1, "ts": 4}],
            "S2": [
                {"event": event, "began": began, "ts": ts}
                for event, began, ts in [("e2", 3, 6), ("e3", 6, 11), ("e4", 7, 9), ("e5", 12, 13)]
            ],
        },
        [(1, 9, {"S1.event": "e1", "S2.event": "e4"})],
    ),
    "cayuga-s24-average-of-two": PaperRun(
        ticks((1, "IBM", 10), (2, "Dell", 22), (3, "IBM", 19)), [(1, 3, {"S1.price": 10, "S2.price": 19, "AVG": 14.5})]
    ),
    # Of a–c, which lasts 5 ticks, and b–c, which lasts 4; c alone lasts 3.
    "cayuga-s31-durations": PaperRun(
        [{"event": event, "began": began, "ts": ts} for event, began, ts in [("a", 1, 1), ("b", 2, 2), ("c", 3, 5)]],
        [(2, 5, {"S1.event": "b", "S2.event": "c"})],
        {"most": 4, "least": 3},
    ),
    # Stream (3) of the paper; it names the first of these results.
    "cayuga-s35-general": PaperRun(
        ticks((1, "IBM", 10), (2, "Dell", 22), (3, "IBM", 9), (4, "Dell", 24), (5, "IBM", 11)),
        [
            (1, 4, {"S1.price": 10, "S2.price": 9, "S3.price": 24}),
            (2, 4, {"S1.price": 22, "S2.price": 9, "S3.price": 24}),
            (3, 5, {"S1.price": 9, "S2.price": 24, "S3.price": 11}),
        ],
    ),
    # Figures 12 to 14: IBM and MSFT begin, and the next quote of IBM ends the first; its volume begins nothing.
    "cayuga-f11-insertion": PaperRun(
        quotes((0, "IBM", 100, 15000), (1, "MSFT", 25, 12000), (2, "IBM", 105, 7000), (3, "MSFT", 26, 4000)),
        [(0, 2, {"company": "IBM", "oldprice": 100, "S2.price": 105})],
    ),
    "cayuga-s51-linear-stat": PaperRun(
        benchmark((1, 7, 1, 10), (2, 7, 2, 9), (3, 7, 3, 8), (4, 7, 1, 10), (5, 8, 2, 9), (6, 7, 3, 8)),
        [(1, 3, {"S1.c1": 10, "S2.c1": 9, "S3.c1": 8})],
        THREE,
    ),
    # 11 and 12 are more than 10.1; 9 is not.
    "cayuga-s51-linear-dyn": PaperRun(
        benchmark((1, 7, 1, 10), (2, 7, 2, 9), (3, 7, 3, 8), (4, 7, 1, 10), (5, 7, 2, 11), (6, 7, 3, 12)),
        [(4, 6, {"S1.c1": 10, "S2.c1": 11, "S3.c1": 12})],
        THREE,
    ),
    # What is not of the primary value lies between; from 1 to 5 are 5 ticks, from 11 to 18 are 8.
    "cayuga-s51-filter": PaperRun(
        benchmark(
            (1, 7, 1, 10), (2, 8, 2, 9), (3, 7, 2, 9), (4, 8, 3, 8), (5, 7, 3, 8),
            (11, 7, 1, 10), (12, 7, 2, 9), (18, 7, 3, 8),
        ),
        [(1, 5, {"S2.c1": 9, "S3.c1": 8})],
        THREE | {"t": 5},
    ),
    # Both events at 3 and at 4 can be the second of three.
    "cayuga-s51-nondeterministic": PaperRun(
        benchmark((1, 7, 1, 10), (2, 7, 9, 1), (3, 7, 2, 9), (4, 7, 2, 8), (5, 7, 3, 7)),
        [(1, 5, {"S2.c1": 8}), (1, 5, {"S2.c1": 9})],
        THREE | {"t": 20},
    ),
    # Three events with three ones each: 9 + 10 + 9 + 7, and 9 + 10 + 8 + 7.
    "cayuga-s51-nondeterministic-agg": PaperRun(
        benchmark((1, 7, 1, 10), (2, 7, 9, 1), (3, 7, 2, 9), (4, 7, 2, 8), (5, 7, 3, 7)),
        [(1, 5, {"S2.c1": 8, "total": 34}), (1, 5, {"S2.c1": 9, "total": 35})],
        THREE | {"t": 20},
    ),
    # The fall to 10 begins at 0 or at 1.
    "cayuga-s522-double-top-fold": PaperRun(
        TWO_TOPS,
        [(start, 14, {"A": 10, "B": 13, "C": 10.5, "D": 12.5, "E": 9}) for start in (0, 1)],
    ),
    # Each extremum from the quote before it to the quote after it.
    "cayuga-s522-extrema": PaperRun(
        TWO_TOPS,
        [(at - 1, at + 1, {"price": price}) for at, price in [(2, 10), (5, 13), (8, 10.5), (11, 12.5), (14, 9)]],
    ),
    # The first extremum begins at 1, with the quote before it; the last ends with the quote after it.
    "cayuga-s522-double-top-extrema": PaperRun(
        TWO_TOPS,
        [(1, 15, {"E1.price": 10, "E2.price": 13, "E3.price": 10.5, "E4.price": 12.5, "E5.price": 9})],
        maker="cayuga-s522-extrema",
    ),
}  # fmt: skip


def test_every_file_has_a_run() -> None:
    assert set(RUNS) == set(FILES)
    assert len(FILES) == 22


@pytest.mark.parametrize("name", FILES)
def test_a_query_of_the_paper(name: str) -> None:
    run = RUNS[name]
    query = kleene.query(FILES[name].read_text(encoding="utf-8"), name=name, params=run.params)
    if run.maker is None:
        found = [dict(match) for match in kleene.match(run.rows, query)]
    else:
        maker = kleene.query(FILES[run.maker].read_text(encoding="utf-8"), name=run.maker)
        together = (match for match in kleene.match(run.rows, [maker, query]) if match["query"] == name)
        found = [{**match, **match["returned"][name]} for match in together]
    shown = [
        (_since(match["start"], run.unit), _since(match["end"], run.unit), _values(match, expected))
        for match, (_, _, expected) in zip(_sorted(found), run.expected, strict=True)
    ]
    assert shown == run.expected


@pytest.mark.parametrize("name", FILES)
def test_what_is_printed_of_a_query_means_the_same(name: str) -> None:
    query = StreamQuery(FILES[name].read_text(encoding="utf-8"))
    first = query.bind(checking=True)
    head = "\n".join(map(format_declaration, query.tree.declarations))
    assert StreamQuery(f"{head}\n{print_stream(first.root)}").bind(checking=True).root is first.root
    assert StreamQuery(query.format()).bind(checking=True).root is first.root


def _sorted(found: list[Row]) -> list[Row]:
    return sorted(found, key=lambda match: (match["start"], match["end"], repr(_plain(match))))


def _plain(match: Row) -> Row:
    return {name: value for name, value in match.items() if name not in ("match_id", "query")}


def _since(time: datetime | int, unit: str) -> int:
    return time if isinstance(time, int) else (time - BEGAN) // timedelta(**{unit: 1})


def _values(match: Row, wanted: dict[str, Any]) -> dict[str, Any]:
    values = {}
    for name in wanted:
        stream, _, attribute = name.rpartition(".")
        values[name] = match[stream][attribute] if stream else match[name]
    return values
