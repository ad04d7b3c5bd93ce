"""Random queries on a Spark stream: shuffled within the delay and in random batches, they answer as on a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.engine.agreement import content
from tests.soaking import SOAKING
from tests.spark.comparing import to_spark
from tests.spark.streaming.sharing import BOUNDED, run_on_stream, waits_for_the_end
from tests.spark.test_random_pairs import Pair, pairs

from kleene.errors import LimitError, NotOnStreams, UnusableColumn
from kleene.testing.generators import STRATA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kleene.spark.streaming.preparing import PreparedStream

pytestmark = pytest.mark.slow

PAIRS = 4 if SOAKING else 2


def on_stream(spark: SparkSession, pair: Pair, refused: Counter[str]) -> PreparedStream | None:
    """None when a query cannot run on a stream, its events not on Spark, or only the end of the input decides it."""
    from kleene.spark.streaming.preparing import prepare_stream

    try:
        made = prepare_stream(
            to_spark(spark, pair.table).coalesce(1), [pair.query], schema=pair.schema, several=False, settings=BOUNDED
        )
    except (NotOnStreams, UnusableColumn, LimitError) as reason:
        refused[type(reason).__name__] += 1
        return None
    if waits_for_the_end(made.bound[0]):
        refused["only the end of the input decides"] += 1
        return None
    return made


@pytest.mark.soak
@pytest.mark.parametrize("half", [0, 1])
def test_pairs(spark: SparkSession, tmp_path: Path, half: int, record_property: Callable[[str, object], None]) -> None:
    strata = [*STRATA, "timeouts", "timeouts_mixed_ends", "non_overlap_mixed_ends", "compressed_mixed_ends"][half::2]
    given = [pair for stratum in strata for pair in pairs(stratum, PAIRS)]
    refused: Counter[str] = Counter()
    prepared = [on_stream(spark, pair, refused) for pair in given]
    usable = [(pair, made) for pair, made in zip(given, prepared, strict=True) if made is not None]
    found = run_on_stream(spark, [made for _, made in usable], tmp_path, seed=half)
    matching = 0
    for number, (pair, _) in enumerate(usable):
        assert (number, "late") not in found
        rows = sorted(content(found.get((number, "matches"))))
        assert rows == sorted(content(pair.expected.matches)), pair.query.text
        late = sorted(content(found.get((number, "timeouts"))))
        assert late == sorted(content(pair.expected.timeouts)), pair.query.text
        matching += bool(rows or late)
    record_property("counted", f"on one stream: {len(usable)} pairs, {matching} with a match; not run: {dict(refused)}")
    assert len(usable) >= 12 * PAIRS
    assert matching >= 6 * PAIRS
