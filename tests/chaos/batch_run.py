"""A pipeline that is run again and again on a disk that fails: `run_batch_seed`.

Each run replaces the results of the one before. The run is Kleene's own `run_pipeline`: locks, recovery, checks,
results aside and swapped in; only the data frames are made up, with the number of their run in each row. Whoever looks
finds a whole result of one run, or for a moment none.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pyarrow as pa
from tests.chaos.disk import LOSING, NEED_ROOM, OPERATIONS, Disk, Failure, Killed
from tests.chaos.frames import Frame
from tests.chaos.stream_run import MOST_WRONG, Quiet, first_line, place_of
from tests.chaos.tally import Rows, Tally

from kleene.errors import KleeneError
from kleene.spark.batch_run import RunTotals
from kleene.spark.pipeline import running
from kleene.spark.pipeline.reading import Pipeline, read_pipeline
from kleene.spark.pipeline.targets import check_sources, check_targets, targets_of

PIPELINE = """\
[[sources]]
name = "readings"
kind = "json"
path = "in"
schema = { type = "string", ts = "long", x = "long" }

[[queries]]
name = "pairs"
text = "PATTERN SEQ(A a, B b) WHERE [x] WITHIN 10"

[[queries]]
name = "alone"
text = "PATTERN SEQ(A a, !(B b), C c) WHERE [x] WITHIN 10"

[[sinks]]
kind = "json"
path = "disk/{query}"

[bad_rows]
path = "disk/bad"
"""
# So many a seed.
_FAILURES = 40


def drawn_failure(draw: random.Random) -> Failure:
    kind = draw.choices(["kill", "power", "error", "full"], [4, 4, 2, 2])[0]
    operation = draw.choice(NEED_ROOM if kind == "full" else OPERATIONS)
    if operation in ("read", "truncate") or draw.random() < 0.2:
        return Failure(kind, None, draw.randint(0, 120))
    return Failure(kind, operation, draw.choice([0, 0, 1, 2, 3, 5, 8, 13]))


@dataclass
class BatchRun:
    """A pipeline whose results are replaced by each run of it."""

    folder: Path
    draw: random.Random
    tally: Tally = field(default_factory=Tally)

    def __post_init__(self) -> None:
        (self.folder / "in").mkdir(parents=True)
        (self.folder / "disk").mkdir()
        (self.folder / "pipeline.toml").write_text(PIPELINE)
        self.pipeline = read_pipeline(self.folder / "pipeline.toml")
        self.targets = targets_of(self.pipeline)
        self.disk = Disk(self.folder / "disk", self.draw, losing=self.draw.choice(LOSING), place=place_of)
        # By number of the run, how many rows each output has.
        self.sizes: dict[int, int] = {}
        # The last run that went well: what it wrote stays until another takes its place.
        self.last: int | None = None

    def go(self) -> Tally:
        with (
            mock.patch.object(running, "bound", self._bound),
            mock.patch.object(running, "_reasons", return_value=()),
        ):
            while self.tally.failures.total() < _FAILURES and len(self.tally.wrong) <= MOST_WRONG:
                self._process(drawn_failure(self.draw))
            self._process(None)
        self.disk.restart(None)
        self.disk.check()
        for target in self.targets:
            assert target.local is not None
            _, rows = self._read(target.local)
            wanted = Counter({f"{self.last} {row}": 1 for row in range(self.sizes.get(self.last or 0, 0))})
            self.tally.outputs.setdefault("batch results", Rows()).add(wanted, rows)
        return self.tally

    def _process(self, failure: Failure | None) -> None:
        dark = self.disk.dark
        self.disk.restart(failure)
        if dark:
            self._look_everywhere()
        self.disk.look = self._look
        self.tally.runs += 1
        self.sizes[self.tally.runs] = self.draw.randint(1, 6)
        there = [target.local for target in self.targets if target.local is not None and target.local.exists()]
        problem = None
        try:
            with self.disk.mounted():
                running.run_pipeline(self.pipeline, Quiet(), None)
            self.last = self.tally.runs
        except Killed:
            pass
        except Exception as raised:
            problem = raised
        finally:
            self.disk.look = lambda path: None
        hit = self.disk.hit
        if hit is not None:
            self.tally.failures[hit.kind] += 1
            self.tally.hits[hit.operation, hit.place] += 1
        if problem is not None and hit is not None and hit.kind == "error":
            # A kill may leave a moment in which there is no result; an error may not.
            self.tally.wrong += [f"{file.name} is gone after {hit}" for file in there if not file.exists()]
        if problem is not None and (hit is None or not isinstance(problem, KleeneError)):
            said = first_line(problem)
            after = "ended by itself" if hit is None else f"an error without a code after {hit}"
            self.tally.wrong.append(f"{after}: {said}")

    @contextmanager
    def _bound(self, pipeline: Pipeline, report: object, session: object) -> Iterator[Any]:
        check_sources(pipeline)
        check_targets(pipeline, self.targets)
        number = self.tally.runs
        rows = pa.table({"row": [f"{number} {row}" for row in range(self.sizes[number])]})
        frame = Frame(rows, self.draw.randint(1, 3))
        run = SimpleNamespace(
            bad_rows=frame,
            run=lambda: RunTotals(0, {}, {}, 0),
            matches=lambda name: frame,
            timeouts=lambda name: None,
            compressed=lambda name: None,
        )
        source = SimpleNamespace(name="readings", counted=lambda: (1_000, 0))
        yield SimpleNamespace(
            pipeline=pipeline,
            session=None,
            sources=(source,),
            targets=self.targets,
            run=run,
            bad_rows=frame,
        )

    # Readers

    def _read(self, folder: Path) -> tuple[int | None, Counter[str]]:
        """Of which run a result is, and its rows; None when it is half, or of several."""
        rows: list[str] = []
        for file in sorted(folder.glob("part-*")):
            try:
                rows += [json.loads(line)["row"] for line in file.read_text().splitlines()]
            except (ValueError, TypeError):
                return None, Counter()
        numbers = {int(row.split()[0]) for row in rows}
        whole = len(numbers) == 1 and (folder / "_SUCCESS").exists() and len(rows) == self.sizes[min(numbers)]
        return (min(numbers) if whole else None), Counter(rows)

    def _look(self, path: Path) -> None:
        below = path.relative_to(self.disk.root).parts
        if below and not below[0].startswith("."):
            self._look_at(self.disk.root / below[0])

    def _look_everywhere(self) -> None:
        for target in self.targets:
            assert target.local is not None
            self._look_at(target.local)

    def _look_at(self, folder: Path) -> None:
        self.tally.counts["looks of a reader"] += 1
        if not folder.exists():
            return
        if self._read(folder)[0] is None:
            self.tally.wrong.append(f"a reader found half of {folder.name}")


def run_batch_seed(folder: Path, seed: int) -> Tally:
    return BatchRun(folder, random.Random(f"batch {seed}")).go()
