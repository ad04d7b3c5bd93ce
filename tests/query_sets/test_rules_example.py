"""examples/rules: ten thousand rules find what looking at the readings of each host by hand finds."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pyarrow.parquet as pq

EXAMPLE = Path(__file__).parents[2] / "examples" / "rules"


def run(*arguments: str) -> str:
    command = [sys.executable, str(EXAMPLE / "alerts.py"), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_rules_from_a_table_find_their_alerts(tmp_path: Path) -> None:
    run("make", str(tmp_path))
    printed = run("match", str(tmp_path))
    readings: defaultdict[tuple[str, str], list[tuple[int, float]]] = defaultdict(list)
    for row in pq.read_table(tmp_path / "readings.parquet").to_pylist():
        readings[row["host"], row["metric"]].append((row["ts"], row["value"]))
    expected = set()
    for rule in pq.read_table(tmp_path / "rules.parquet").to_pylist():
        listed = readings[rule["host"], rule["metric"]]
        for place, (moment, value) in enumerate(listed):
            if value <= rule["limit"]:
                continue
            following = next((later for later, _ in listed[place:] if later > moment), None)
            # A reading lasts one second: the first and the last one count.
            if following is None or following - moment + 1 > rule["seconds"]:
                continue
            again = [other for later, other in listed if later == following and other > rule["limit"]]
            expected |= {(rule["rule"], moment, value, following, other) for other in again}
    alerts = pq.read_table(tmp_path / "alerts.parquet").to_pylist()
    found = {(row["query"], row["start"], row["first"]["value"], row["end"], row["again"]["value"]) for row in alerts}
    assert found == expected
    assert len(found) == len(alerts) > 1000
    page = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    first = next(line for line in printed.splitlines() if line.startswith("rule-"))
    assert first in page
    assert f"{len(alerts):,} alerts" in page


def test_a_wrong_command_says_how() -> None:
    ended = subprocess.run([sys.executable, str(EXAMPLE / "alerts.py"), "mach"], capture_output=True, text=True)
    assert ended.returncode == 2
    assert "alerts.py make FOLDER" in ended.stderr
