"""W6: the streams and queries of ZStream §6, from fixed seeds, at any size.

Prices are uniform over an interval of length 1, and a class's interval is shifted so that a comparison of two prices
holds with the wanted probability, whichever two events are compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import sqrt

import numpy as np
import numpy.typing as npt
import pyarrow as pa

QUERY_4 = "PATTERN IBM; Sun; Oracle WHERE IBM.price > Sun.price WITHIN 200 units"
QUERY_5 = "PATTERN IBM; Sun; Oracle WITHIN 200 units"
QUERY_6 = (
    "PATTERN IBM; Sun; Oracle; Google WHERE Oracle.price > Sun.price AND Oracle.price > Google.price WITHIN 100 units"
)
QUERY_7 = "PATTERN IBM; !Sun; Oracle WITHIN 200 units"
QUERY_8 = "PATTERN Publication; Project; Course WHERE [ip] WITHIN 10 hours"

CLASSES = ("IBM", "Sun", "Oracle", "Google")


@dataclass(frozen=True)
class Stocks:
    """Quotes, one a unit of time: how often each class comes, relative to the others, and where its prices lie."""

    rates: tuple[float, ...]
    # By class whose price must be lower than another's: in which part of the pairs it is.
    selectivities: Mapping[str, float] = field(default_factory=dict)

    def table(self, events: int, seed: int = 6, first: int = 0) -> pa.Table:
        rng = np.random.default_rng(seed)
        rates = np.asarray(self.rates)
        code = rng.choice(len(rates), events, p=rates / rates.sum())
        lowest = np.array([_lowest(self.selectivities[name]) if name in self.selectivities else 0 for name in CLASSES])
        return pa.table(
            {
                "type": pa.DictionaryArray.from_arrays(pa.array(code, pa.int32()), pa.array(CLASSES)),
                "ts": np.arange(first, first + events),
                "price": rng.random(events) + lowest[code],
            }
        )

    def __str__(self) -> str:
        return ":".join(f"{rate:g}" for rate in self.rates)


def _lowest(selectivity: float) -> float:
    """Where prices must begin for one in [0, 1) to be higher with this probability: the area of a triangle."""
    return 1 - sqrt(2 * selectivity) if selectivity <= 0.5 else sqrt(2 * (1 - selectivity)) - 1


# §6.1.2, for Query 5: from frequent IBM to rare.
RATES = ((32, 1, 1), (8, 1, 1), (2, 1, 1), (1, 1, 1), (1, 2, 2), (1, 8, 8), (1, 32, 32))

# §6.2, for Query 6; joined one after the other they are the phases of §6.3.
SETTINGS = {
    "rate 1:100:100:100": Stocks((1, 100, 100, 100), {"Sun": 1.0, "Google": 1.0}),
    "sel1 = 1/50": Stocks((1, 1, 1, 1), {"Sun": 1 / 50, "Google": 1.0}),
    "sel2 = 1/50": Stocks((1, 1, 1, 1), {"Sun": 1.0, "Google": 1 / 50}),
}

# §6.5, Table 4; the paper's log is not public. How its addresses are spread is not known: here the k-th most frequent
# one makes 1/k of the accesses of the first, as visitors of web sites do.
RECORDS = 1_500_000
ACCESSES = {"Publication": 6_775, "Project": 11_610, "Course": 16_083}
ADDRESSES = 50_000
MONTH = 28 * 86_400


def web_log(records: int = RECORDS, seed: int = 17, crawlers: int = 0) -> pa.Table:
    """§6.5: accesses spread evenly over a month; a shorter log ends earlier.

    Where so many crawlers read all projects and courses, and few publications, the order of joins matters.
    """
    rng = np.random.default_rng(seed)
    counts = [round(number * records / RECORDS) for number in ACCESSES.values()]
    code = np.repeat(np.arange(len(counts) + 1), [*counts, records - sum(counts)])
    rng.shuffle(code)
    seconds = np.sort(rng.integers(0, round(MONTH * records / RECORDS), records))
    names = pa.array([f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}" for n in range(ADDRESSES + crawlers)])
    ip = _skewed(rng, ADDRESSES, records)
    if crawlers:
        crawled = (code == 1) | (code == 2) | ((code == 0) & (rng.random(records) < 0.002))
        ip[crawled] = rng.integers(ADDRESSES, ADDRESSES + crawlers, int(crawled.sum()))
    return pa.table(
        {
            "type": pa.DictionaryArray.from_arrays(pa.array(code, pa.int32()), pa.array([*ACCESSES, "Other"])),
            "ts": pa.array(seconds).cast(pa.timestamp("s", "UTC")),
            "ip": pa.DictionaryArray.from_arrays(pa.array(ip, pa.int32()), names).cast(pa.string()),
        }
    )


def _skewed(rng: np.random.Generator, values: int, number: int) -> npt.NDArray[np.int64]:
    """Zipf's law with exponent 1."""
    shares = 1 / np.arange(1, values + 1)
    bounds = np.cumsum(shares) / shares.sum()
    return np.searchsorted(bounds, rng.random(number)).astype(np.int64)
