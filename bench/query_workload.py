"""W5: the technical benchmark of Cayuga (CESAR §5.1, Table 2), its stream, its five templates, and queries of them.

The attributes of a query are chosen once: its primary attribute is d1 … d4 by a Zipf law, the second one follows it,
and so do the two continuous attributes. A template is therefore four texts. Values of θi follow a Zipf law of their
own over the 100 values of a discrete attribute and the 25 ranges of a continuous one, whose selectivity is 0.7 on
average.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa

PAPERS = Path(__file__).parent.parent / "examples" / "papers"
TEMPLATES = {
    "LinearStat": "cayuga-s51-linear-stat.kleene",
    "LinearDyn": "cayuga-s51-linear-dyn.kleene",
    "Filter": "cayuga-s51-filter.kleene",
    "NonDeterministic": "cayuga-s51-nondeterministic.kleene",
    "NonDeterministicAgg": "cayuga-s51-nondeterministic-agg.kleene",
}
DISCRETE, VALUES, RANGES, DURATION = 4, 100, 25, 20
EVENTS = 100_000


@dataclass(frozen=True)
class Workload:
    """What Table 2 varies.

    values   how many values a discrete attribute has: fewer of them give more matches
    unit     how many events a unit of the duration t lasts
    """

    selectivity: float = 0.7
    zipf: tuple[float, float, float] = (1.0, 1.0, 0.8)
    values: int = VALUES
    unit: int = 1
    seed: int = 5


def events(size: int = EVENTS, workload: Workload = Workload()) -> pa.Table:  # noqa: B008 - it is frozen
    """Uniform values; one event a tick."""
    rng = np.random.default_rng(workload.seed)
    discrete = {f"d{number}": rng.integers(0, workload.values, size) for number in range(1, DISCRETE + 1)}
    continuous = {f"c{number}": rng.random(size) for number in range(1, DISCRETE + 1)}
    return pa.table(
        {
            "type": pa.array(["S"]).take(pa.array(np.zeros(size, np.int32))),
            "ts": np.arange(size),
            **discrete,
            **continuous,
        }
    )


@cache
def text(template: str, primary: int) -> str:
    """A template whose primary attribute is one of d1 … d4; the others follow it round."""
    body = (PAPERS / TEMPLATES[template]).read_text(encoding="utf-8")
    expression = body[body.rindex("DECLARE") :].split("\n", 1)[1].strip()
    turned = {
        f"{kind}{number}": f"{kind}{(number - 1 + primary) % DISCRETE + 1}" for kind in "dc" for number in range(1, 5)
    }
    for name, other in turned.items():
        expression = expression.replace(f".{name} ", f".@{other} ").replace(f".{name},", f".@{other},")
        expression = expression.replace(f".{name}\n", f".@{other}\n")
    return expression.replace("@", "")


def queries(template: str, size: int, workload: Workload = Workload()) -> list[tuple[str, pa.Table]]:  # noqa: B008
    """The texts of a template, and a table for each: a row is a query."""
    rng = np.random.default_rng(workload.seed + 1)
    first = workload.zipf[0]
    primary = _zipf(rng, DISCRETE, first, size)
    columns: dict[str, np.ndarray] = {"primary": _zipf(rng, workload.values, first, size)}
    spread = min(workload.selectivity, 1 - workload.selectivity)
    for number, law in enumerate(workload.zipf, 1):
        columns[f"second{number}"] = _zipf(rng, workload.values, law, size)
        for name in (f"low{number}", f"high{number}"):
            share = workload.selectivity + spread * (_zipf(rng, RANGES, law, size) / (RANGES - 1) - 0.5)
            columns[name] = 1 - share if name.startswith("low") else share
    columns["t"] = np.full(size, DURATION * workload.unit)
    table = pa.table({**columns, "name": pa.array([f"{template}-{number}" for number in range(size)])})
    return [(text(template, kind), table.filter(pa.array(primary == kind))) for kind in range(DISCRETE)]


def _zipf(rng: np.random.Generator, values: int, law: float, size: int) -> np.ndarray:
    weights = 1 / np.arange(1, values + 1) ** law
    return rng.choice(values, size, p=weights / weights.sum())
