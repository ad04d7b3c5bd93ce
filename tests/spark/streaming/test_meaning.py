"""A checkpoint knows what columns mean: slots and the record beside them refuse each change by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.engine.batches import words
from tests.engine.changed_meanings import CHANGES, EVENTS, NO_CHANGES, TEXT, Change
from tests.spark.stream_pipelines import STREAM, Watched, changed, event, put
from tests.spark.streaming.driving import Slot

from kleene.errors import BadSnapshot
from kleene.pattern import Query, Schema
from kleene.spark.streaming.live_slot import MEANING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HINT = "restore the schema and the output, or begin with a new checkpoint; columns may be added"


def slot_of(text: str, events: pa.Table, **schema: Any) -> Slot:
    return Slot([Query(text, "pairs")], Schema(**schema), events.schema)


def begun(change: Change) -> Slot:
    slot = slot_of(TEXT, EVENTS, **change.before)
    slot.batch(EVENTS, 0)
    return slot


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_slot_refuses_a_change_by_name(change: Change) -> None:
    slot = slot_of(change.text, change.events, **change.schema)
    slot.store = begun(change).store
    with pytest.raises(BadSnapshot) as refused:
        slot.batch(change.events.slice(1, 1), 0)
    assert (refused.value.message, refused.value.hint) == (f"{change.said} when this checkpoint was begun", HINT)


@pytest.mark.parametrize("change", NO_CHANGES.values(), ids=NO_CHANGES)
def test_a_slot_goes_on_with_what_means_the_same(change: Change) -> None:
    slot = slot_of(change.text, change.events, **change.schema)
    slot.store = begun(change).store
    slot.batch(change.events.slice(1, 1).set_column(1, "ts", pa.array([7])), 0)
    slot.batch(change.events.slice(1, 1).set_column(1, "ts", pa.array([50])), 1_000_000)
    assert sorted(word for table in slot.given["matches"] for word in words(table)) == ["a1 b5", "a1 b7"]


def test_a_slot_that_an_older_kleene_kept_goes_on() -> None:
    slot = begun(Change(""))
    del slot.store.parts[MEANING, 0, 0]
    slot.at[0].forget_all()
    slot.batch(EVENTS.slice(1, 1), 0)
    assert slot.counted["made anew"] == 1


# The record beside the checkpoint ------------------------------------------------------------------------------------

TIED = ("[stream]", '[schema]\ntie_breaker = "x"\n\n[stream]')
RECORDED = {
    "tick": (
        "time is counted in ticks of 1 s, and was in ticks",
        ("[stream]", '[schema]\ntick = "1 second"\n\n[stream]'),
    ),
    "time": ("the time column is `x`, and it was `ts`", ("[stream]", '[schema]\ntime = "x"\n\n[stream]')),
    "start": ("the start column is `x`, and there was none", ("[stream]", '[schema]\nstart = "x"\n\n[stream]')),
    "tie-breaker": ("the tie-breaker is `x`, and there was none", TIED),
    "column type": ("column `x` holds values of type string, and held int", ('x = "long"', 'x = "string"')),
    "output": ("the output is COMPRESSED, and was ALL", ("WITHIN 10", "WITHIN 10 OUTPUT COMPRESSED")),
}


def test_a_checkpoint_refuses_a_change_by_name(spark: SparkSession, tmp_path: Path) -> None:
    from kleene.spark.pipeline.reading import read_pipeline
    from kleene.spark.pipeline.stream_running import run_stream

    def run(text: str) -> None:
        (tmp_path / "pipeline.toml").write_text(text)
        run_stream(read_pipeline(tmp_path / "pipeline.toml"), Watched(), spark)

    put(tmp_path / "in", 1, event("A", 1, 5), event("Z", 100, 0))
    run(STREAM)
    said = {}
    for name, (_, change) in RECORDED.items():
        with pytest.raises(BadSnapshot) as refused:
            run(changed(change))
        said[name] = refused.value.message
    assert said == {name: f"{text} when this checkpoint was begun" for name, (text, _) in RECORDED.items()}
    # A column that was not there, and a wider one, change nothing.
    run(changed(('x = "long"', 'x = "int", y = "string"')))
