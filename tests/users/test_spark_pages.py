"""The code of docs/spark.md and docs/streaming.md, in a process of its own and on a session with nothing set."""

from __future__ import annotations

import re
import sys
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.users.places import HERE, ROOT, environment, results
from tests.users.test_plain_session import STORES

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MORNING = datetime(2026, 3, 2, 9)
SYDNEY = "Australia/Sydney"


def readings() -> pa.Table:
    rows: list[dict[str, Any]] = []
    for tag in range(30):
        rows.append({"type": "Shelf", "ts": MORNING + timedelta(minutes=tag), "tag_id": tag, "door": None})
        if tag % 3:
            rows.append({"type": "Till", "ts": MORNING + timedelta(minutes=tag + 20), "tag_id": tag, "door": None})
        rows.append({"type": "Exit", "ts": MORNING + timedelta(minutes=tag + 30), "tag_id": tag, "door": 1 + tag % 3})
    return pa.Table.from_pylist([{**row, "store": f"S{row['tag_id'] % 2}"} for row in rows])


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("pages")
    (folder / "readings").mkdir()
    pq.write_table(readings(), folder / "readings" / "all.parquet")
    page = (ROOT / "docs" / "streaming.md").read_text(encoding="utf-8")
    (folder / "stream" / "readings").mkdir(parents=True)
    first = re.findall(r"^```json\n(.*?)\n```$", page, re.MULTILINE | re.DOTALL)[0]
    (folder / "stream" / "readings" / "first.json").write_text(first + "\n")
    return results(
        [sys.executable, HERE / "spark_pages.py", STORES],
        cwd=folder,
        environ=environment(TZ=SYDNEY),
    )


def test_the_page_of_spark(there: dict[str, Any]) -> None:
    assert there["zone"] == SYDNEY
    assert there["spark"].pop("files") >= 1
    assert there["spark"] == {"examples": 3, "thefts": 10, "in SQL": [["S0", 5], ["S1", 5]], "explained": True}


def test_the_page_of_streams(there: dict[str, Any]) -> None:
    assert there["streaming"] == {"examples": 2, "thefts": 1, "live thefts": 1, "live bad": 1, "live late": 0}
