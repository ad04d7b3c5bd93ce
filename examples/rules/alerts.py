"""Ten thousand alert rules from a Parquet table over an hour of readings.

python examples/rules/alerts.py make FOLDER     # rules.parquet and readings.parquet
python examples/rules/alerts.py match FOLDER    # alerts.parquet, and what was found
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import kleene

RULES, HOSTS, READINGS = 10_000, 500, 300_000
METRICS = ("cpu", "memory", "disk", "latency")

# A metric of a host is above its limit, and so is its next reading, within some seconds.
SUSTAINED = """
σ{again.value > :limit}(
  σ{first.host = :host AND first.metric = :metric AND first.value > :limit}(Reading first)
  ;{again.host = :host AND again.metric = :metric AND DUR <= :seconds} Reading again
)
"""


def make(folder: Path) -> None:
    """Draw rules and readings."""
    rng = np.random.default_rng(7)
    hosts, metrics = (pa.array(names) for names in ([f"host-{number:03}" for number in range(HOSTS)], METRICS))
    rules = pa.table(
        {
            "rule": [f"rule-{number:05}" for number in range(RULES)],
            "host": hosts.take(pa.array(rng.integers(0, HOSTS, RULES))),
            "metric": metrics.take(pa.array(rng.integers(0, len(METRICS), RULES))),
            "limit": np.round(rng.uniform(95.0, 100.0, RULES), 2),
            "seconds": rng.integers(30, 301, RULES),
        }
    )
    readings = pa.table(
        {
            "type": pa.array(["Reading"]).take(pa.array(np.zeros(READINGS, np.int32))),
            "ts": np.sort(rng.integers(0, 3_600, READINGS)),
            "host": hosts.take(pa.array(rng.integers(0, HOSTS, READINGS))),
            "metric": metrics.take(pa.array(rng.integers(0, len(METRICS), READINGS))),
            "value": np.round(rng.uniform(0.0, 100.0, READINGS), 3),
        }
    )
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(rules, folder / "rules.parquet")
    pq.write_table(readings, folder / "readings.parquet")


def match(folder: Path) -> None:
    """Load the rules, match the readings, and write the alerts."""
    readings = pq.read_table(folder / "readings.parquet")
    began = time.perf_counter()
    rules = kleene.QuerySet(readings)
    added = rules.add_many(SUSTAINED, pq.read_table(folder / "rules.parquet"), names="rule")
    loaded = time.perf_counter()
    (alerts,) = rules.match(readings).matches
    ended = time.perf_counter()
    pq.write_table(alerts, folder / "alerts.parquet")
    print(f"{added.number:,} rules, {added.refused.num_rows} refused, in {loaded - began:.2f} s")
    print(f"{readings.num_rows:,} readings, {alerts.num_rows:,} alerts, in {ended - loaded:.2f} s")
    for row in alerts.slice(0, 3).to_pylist():
        first, again = row["first"], row["again"]
        print(f"{row['query']}: {first['host']} {first['metric']} {first['value']} at {row['start']} s,", end=" ")
        print(f"{again['value']} at {row['end']} s")


def main(arguments: list[str]) -> int:
    works = {"make": make, "match": match}
    if len(arguments) != 2 or arguments[0] not in works:
        print(__doc__, file=sys.stderr)
        return 2
    works[arguments[0]](Path(arguments[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
