"""Streams of the papers' experiments, from fixed seeds, at any size, and the queries asked of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

TYPES = 20
VALUES_OF_ATTR2 = 20
PRICES = 1_000


@dataclass(frozen=True)
class Sequence:
    """A sequence of single events: what Kleene is told in a line, and a peer must spell out as joins."""

    types: tuple[str, ...]
    keys: tuple[str, ...]
    window: int

    @property
    def text(self) -> str:
        return self.asking()

    def asking(self, *, condition: str = "", forbidden: str = "") -> str:
        """The query, with a further condition, or with a type that may not stand between the first two events."""
        first, *others = (f"{name} v{number}" for number, name in enumerate(self.types, 1))
        parts = ", ".join([first, *([f"!({forbidden} n)"] if forbidden else []), *others])
        where = " AND ".join([*(f"[{key}]" for key in self.keys), *([condition] if condition else [])])
        return f"PATTERN SEQ({parts}) {'WHERE ' + where if where else ''} WITHIN {self.window}"


def sase(events: int, values: int, seed: int = 1, first: int = 0) -> pa.Table:
    """W1 (SASE Table 1): twenty types, attr1 in [0, V), attr2 in [0, 20), all uniform; time is the position."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "type": _types([f"E{number}" for number in range(1, TYPES + 1)], rng.integers(0, TYPES, events)),
            "ts": np.arange(first, first + events),
            "attr1": rng.integers(0, values, events),
            "attr2": rng.integers(0, VALUES_OF_ATTR2, events),
        }
    )


def sequence(length: int = 3, window: int = 10_000, keys: tuple[str, ...] = ("attr1",)) -> Sequence:
    """W1 and W2 (SASE §5.2–5.3): SEQ(E1, …, EL) WHERE [attr1] WITHIN W."""
    return Sequence(tuple(f"E{number}" for number in range(1, length + 1)), keys, window)


def bystanders(events: int, seed: int = 4) -> tuple[pa.Table, Sequence]:
    """W4: ten thousand keys, twenty types of which two matter, and a short window: most events matter to nobody."""
    rng = np.random.default_rng(seed)
    names = ["A", "B", *(f"X{number}" for number in range(3, TYPES + 1))]
    table = pa.table(
        {
            "type": _types(names, rng.integers(0, TYPES, events)),
            "ts": np.arange(events),
            "k": rng.integers(0, 10_000, events),
        }
    )
    return table, Sequence(("A", "B"), ("k",), 100)


# W8 (NEXT §1.1): payments a second, and how long after its time one of those comes that are late.
PAYMENTS, LATE_SECONDS = 2_100, 2.0
_CURRENCIES, _COUNTRIES = ["USD", "EUR", "GBP", "JPY"], ["US", "DE", "GB", "JP", "FR", "IT"]


def payments(events: int, seed: int = 8) -> pa.Table:
    """W8: card payments as a Poisson process, 29 to 292 bytes each, one in ten out of order by up to two seconds.

    A card is used once a day on average; here once in the stream. The rows stand as they arrive.
    """
    rng = np.random.default_rng(seed)
    seconds = np.cumsum(rng.exponential(1 / PAYMENTS, events))
    arrival = seconds + np.where(rng.random(events) < 0.1, rng.uniform(0, LATE_SECONDS, events), 0)
    size = np.clip(rng.normal(110, 30, events), 0, 252).astype(np.int64)
    letters = rng.integers(97, 123, int(size.sum()), dtype=np.uint8).tobytes()
    ends = np.concatenate(([0], np.cumsum(size))).astype(np.int32)
    texts = pa.StringArray.from_buffers(events, pa.py_buffer(ends), pa.py_buffer(letters))
    table = pa.table(
        {
            "type": pa.DictionaryArray.from_arrays(pa.array(np.zeros(events, np.int32)), pa.array(["t"])),
            "ts": pa.array((seconds * 1e6).astype(np.int64)).cast(pa.timestamp("us", "UTC")),
            "id": np.arange(events),
            "acc": rng.integers(0, events, events),
            "amount": rng.gamma(1.2, 80.0, events).round(2),
            "currency": pa.array(_CURRENCIES).take(pa.array(rng.integers(0, len(_CURRENCIES), events))),
            "country": pa.array(_COUNTRIES).take(pa.array(rng.integers(0, len(_COUNTRIES), events))),
            "text": texts,
        }
    )
    return table.take(pa.array(np.argsort(arrival, kind="stable")))


def fraud(window: str) -> str:
    """W8 (NEXT §1.1): two small payments with a card, then a large one."""
    return (
        "PATTERN SEQ(t s1, t s2, t l) WHERE [acc] AND s1.amount < 100 AND s2.amount < 100 AND l.amount > 250 "
        f"WITHIN {window}"
    )


def fraud_in_eql(window: str) -> str:
    """W8 as NEXT §1.1 prints it: each payment with the first later ones of its card, if they are small and large."""
    return (
        "SELECT * FROM ( t S1 ; t S2 ; t L ) WHERE FILTER(S1.acc = S2.acc), FILTER(S2.acc = L.acc), "
        f"S1.amount < 100 AND S2.amount < 100 AND L.amount > 250 AND (S1, L) OCCURS WITHIN {window}"
    )


def stock(events: int, seed: int = 3, first: int = 0, *, rising: float = 0.7, prices: int = PRICES) -> pa.Table:
    """W3 (SASE+ §6): one type, two symbols, a price that rises with 0.7 and falls or stays with 0.15 each.

    The paper keeps prices in 1…1000 and does not say how. Here the walk is a circle: 1000 is followed by 1, and 1 by
    1000 when it falls. Each symbol then passes a multiple of 500, where runs start, about once in 900 of its events:
    the paper's two runs a time step and its 250 events a match with p1 (Table 2). A run that starts at 1000 finds
    nothing greater, so matches of p2 and p3 are half as long here on average (70 for 140, 120 for 250 with s3). With
    prices in 1…999 all runs start at 500, and a window of 500 events does not reach the end of the circle.
    """
    rng = np.random.default_rng(seed)
    symbol = rng.integers(1, 3, events)
    other = round((1 - rising) / 2, 6)
    step = rng.choice(np.array([1, -1, 0]), events, p=[rising, other, other])
    price: npt.NDArray[np.int64] = np.empty(events, np.int64)
    for name in (1, 2):
        own = symbol == name
        price[own] = (rng.integers(0, prices) + np.cumsum(step[own])) % prices + 1
    return pa.table(
        {
            "type": _types(["STOCK"], np.zeros(events, np.int64)),
            "ts": np.arange(first, first + events),
            "symbol": symbol,
            "price": price,
            "volume": rng.integers(1, 1_001, events),
        }
    )


# SASE+ Table 1: the strategies and the iterator predicates, as the paper numbers them.
STRATEGIES = {"s2": "partition_contiguity", "s3": "skip_till_next_match"}
PREDICATES = {"p1": "", "p2": "a[i].price > a[i-1].price AND", "p3": "a[i].price > min(a[..i-1].price) AND"}


def stock_query(
    predicate: str, strategy: str, window: int = 500, *, filtered: bool = True, compressed: bool = False
) -> str:
    """W3's template; without its filter every event starts a run."""
    start = "a[1].price % 500 = 0 AND" if filtered else ""
    return (
        f"PATTERN SEQ(STOCK+ a[], STOCK b) WHERE {STRATEGIES[strategy]} "
        f"{{ [symbol] AND {start} {PREDICATES[predicate]} b.volume < 150 }} WITHIN {window} EVENTS"
        f"{' OUTPUT COMPRESSED' if compressed else ''}"
    )


def _types(names: list[str], codes: npt.NDArray[np.int64]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(names))
