"""A session with nothing set: adaptive execution, code generation, 200 partitions, and time zones of every origin.

The answers are those in process, on the same files. `tests/users/plain_session.py` is the user's script.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.soaking import SOAKING
from tests.users.day import OF_TIME, QUERIES, answers, morning, plain, text
from tests.users.places import HERE, environment, results

import kleene

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NEW_YORK, KOLKATA = "America/New_York", "Asia/Kolkata"
# Stores of a stream: as many as a session has partitions in `make soak`, where they take a minute.
STORES = "200" if SOAKING else "10"
# What is asked where. Case files have Spark's defaults as well: `tests/spark/test_cases_on_spark.py`.
ASKED = {
    "zoned": [*QUERIES] if SOAKING else ["by key", "sliced", "since", "late", "shared"],
    "naive": [*OF_TIME] if SOAKING else ["since"],
    "in another zone": [*OF_TIME] if SOAKING else ["since", "late"],
}
# What is found beside the matches.
BESIDE = {"late": ["timeouts", "bad rows"], "by key": ["flat", "several"], "shared": ["decompressed"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("morning")
    for kind in ("zoned", "naive"):
        pq.write_table(morning(zoned=kind == "zoned"), made / f"{kind}.parquet")
    return made


@pytest.fixture(scope="module")
def here(folder: Path) -> dict[str, dict[str, Any]]:
    return {
        kind: answers(pq.read_table(folder / f"{kind}.parquet"), zoned=kind == "zoned") for kind in ("zoned", "naive")
    }


@pytest.fixture(scope="module")
def there(folder: Path) -> dict[str, Any]:
    """A process in New York, in a venv that nobody activated; then its session is sent to Kolkata."""
    script = HERE / "plain_session.py"
    command: list[str | Path] = [sys.executable, script, KOLKATA, STORES, json.dumps(ASKED)]
    return results(command, cwd=folder, environ=environment(TZ=NEW_YORK))


def test_the_session_has_sparks_defaults(there: dict[str, Any]) -> None:
    expected = {"shuffle.partitions": "200", "adaptive.enabled": "true", "codegen.wholeStage": "true"}
    assert there["settings"] == {**expected, "ansi.enabled": "true", "session.timeZone": NEW_YORK}
    assert there["left alone"]


def test_the_events_ask_something(here: dict[str, dict[str, Any]]) -> None:
    """Every answer has rows, and what a local clock would change is among them."""
    assert all(len(rows) >= 2 for found in here.values() for rows in found.values())
    assert here["zoned"]["sliced"] != []
    assert len(here["zoned"]["since"]) < len(here["zoned"]["by key"]) + len(here["zoned"]["late"])


@pytest.mark.parametrize(
    ("place", "name"),
    [(place, name) for place, names in ASKED.items() for asked in names for name in [asked, *BESIDE.get(asked, [])]],
)
def test_answers_are_those_in_process(
    name: str, place: str, here: dict[str, dict[str, Any]], there: dict[str, Any]
) -> None:
    assert there[place][name] == here["naive" if place == "naive" else "zoned"][name]


def test_sql_and_one_pass(folder: Path, here: dict[str, dict[str, Any]], there: dict[str, Any]) -> None:
    events = pq.read_table(folder / "naive.parquet")
    matches = kleene.match(events, text("by key", zoned=False))
    assert there["sql"] == plain(matches.select(["match_id"]))
    assert there["in one pass"]["matches"]["by key"] == matches.num_rows
    named = kleene.query(text("sliced", zoned=False), name="sliced")
    assert there["in one pass"]["sliced"] == plain(kleene.match(events, named))


def test_a_stream_with_a_store_for_each_partition(folder: Path, there: dict[str, Any]) -> None:
    """All that it finds before the last minutes; what may still come keeps the rest open."""
    matches = kleene.match(pq.read_table(folder / "zoned.parquet"), text("linked", zoned=True))
    found = set(there["on a stream"])
    assert len(found) == len(there["on a stream"]) >= 20
    assert found <= set(matches.column("match_id").to_pylist())
    assert len(found) >= 0.95 * matches.num_rows


def test_the_users_own_functions_run_where_they_would(there: dict[str, Any]) -> None:
    assert there["workers"] == there["workers afterwards"] == "python3"
