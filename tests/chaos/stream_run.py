"""One stream drawn from a seed, and run until it is done, through whatever fails: `run_stream_seed`.

The run is Kleene's own `run_stream`: locks, record, marks, planned batches, slots, sinks; only Spark is a model.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
from tests.chaos.disk import LOSING, NEED_ROOM, OPERATIONS, STATE, Disk, Failure, Killed
from tests.chaos.job import Input, Job, Planned
from tests.chaos.spark_model import Damaged, SimulatedLive, SparkStopped, TaskFailed
from tests.chaos.tally import Rows, Tally

from kleene.errors import KleeneError, RunInProgress
from kleene.pattern import Query, Schema
from kleene.spark.pipeline import stream_running
from kleene.spark.pipeline.file_checks import FileChecks
from kleene.spark.pipeline.reading import Pipeline, read_pipeline
from kleene.spark.pipeline.stream_places import check_places, checkpoint_place
from kleene.spark.pipeline.targets import targets_of
from kleene.spark.run_lock import one_run
from kleene.spark.slot import SlotGroup
from kleene.spark.streaming import live_slot, processor
from kleene.spark.worker import task_spec, work_from
from kleene.testing.reference_outputs import table_outputs

COLUMNS = pa.schema([("type", pa.string()), ("ts", pa.int64()), ("x", pa.int64()), ("v", pa.int64())])
# Queries with a key, whose events go to two slots, and without one.
KEYED = (
    "PATTERN SEQ(A a, B b) WHERE [x] WITHIN {window}",
    "PATTERN SEQ(A a, C c, !(B b)) WHERE [x] WITHIN {window}",
    "PATTERN SEQ(A a, !(B b), C c) WHERE [x] AND a.v < c.v WITHIN {window}",
    "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match {{ [x] }} WITHIN {window}",
    "PATTERN A a & C c WHERE [x] WITHIN {window}",
)
# One that every stream has.
TIMEOUTS = "PATTERN SEQ(A a, B b) WHERE [x] WITHIN {window} TIMEOUTS INTO unmet"
ALONE = (
    "PATTERN SEQ(A a, B b, C c) WHERE a.v < b.v WITHIN {window}",
    "PATTERN SEQ(A a, !(B b), C c) WITHIN {window}",
    "PATTERN SEQ(B b, C c) WITHIN {window} OUTPUT NON_OVERLAP",
)
PIPELINE = """\
[[sources]]
name = "readings"
kind = "json"
path = "in"
schema = {{ type = "string", ts = "long", x = "long", v = "long" }}

{queries}
[[sinks]]
kind = "json"
path = "disk/{life}/{{query}}"

[[sinks]]
kind = "json"
path = "disk/{life}/timeouts-{{query}}"
output = "timeouts"

[[sinks]]
kind = "json"
path = "disk/{life}/late"
output = "late"

[bad_rows]
path = "disk/{life}/bad"

[stream]
checkpoint = "disk/{life}-state"
delay = {delay}
available_now = true
"""
# A seed that is wrong so often is given up: it may never come to its next failure.
MOST_WRONG = 50
# So many a seed.
_FAILURES = 40


# What is drawn -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scenario:
    """Queries, and the files that the stream reads.

    keyed   so many of the queries have a key; their events go to so many `slots`
    """

    queries: tuple[Query, ...]
    keyed: int
    slots: int
    delay: int
    inbox: dict[str, Input] = field(default_factory=dict)

    def more_files(self, draw: random.Random) -> None:
        for number in range(len(self.inbox), len(self.inbox) + draw.randint(1, 3)):
            first, last = 100 + 20 * number - 2 * self.delay, 120 + 20 * number
            events = [_event(draw, draw.randint(first, last)) for _ in range(draw.randint(0, 12))]
            bad = [f"bad {number} {place}" for place in range(draw.choice([0, 0, 1, 3]))]
            self.inbox[f"{number:03}"] = Input(events, bad)

    def last_file(self) -> None:
        """One that lets so much time pass that everything is decided."""
        self.inbox["last"] = Input([{"type": "Z", "ts": 10**9, "x": 0, "v": 0}], ())

    def job(self) -> Job:
        numbers = range(len(self.queries))
        parts = [SlotGroup(tuple(numbers[: self.keyed]), tuple(COLUMNS.names), 0, self.slots)]
        if self.keyed < len(self.queries):
            parts.append(SlotGroup(tuple(numbers[self.keyed :]), tuple(COLUMNS.names), self.slots, 1))
        told = task_spec(self.queries, Schema(), COLUMNS, parts)
        told = {**told, "bad_slot": sum(part.slots for part in parts), "pace": (1, 1)}
        work = work_from(told)
        wanted = [frozenset(t for number in part.queries for t in work.bound[number].types) for part in parts]
        return Job(work, told, parts, wanted, self.delay)


def drawn_scenario(draw: random.Random) -> Scenario:
    keyed = [TIMEOUTS, *draw.sample(KEYED, draw.choice([0, 0, 1]))]
    alone = draw.sample(ALONE, draw.choice([0, 0, 1]))
    texts = [text.format(window=draw.choice([5, 20, 60])) for text in (*keyed, *alone)]
    queries = tuple(Query(text, name=f"q{number}") for number, text in enumerate(texts))
    return Scenario(queries, len(keyed), draw.choice([1, 1, 2]), draw.choice([0, 5, 20]))


def _event(draw: random.Random, ts: int) -> dict[str, Any]:
    return {"type": draw.choice("ABC"), "ts": ts, "x": draw.randrange(4), "v": draw.randrange(10)}


def drawn_failure(draw: random.Random) -> Failure:
    kind = draw.choices(["kill", "power", "error", "full", "worker"], [4, 4, 2, 2, 3])[0]
    operations: Sequence[str | None] = {"error": OPERATIONS, "full": NEED_ROOM, "worker": (*STATE, "drop timer")}.get(
        kind, (*OPERATIONS, *STATE)
    )
    if kind != "worker" and draw.random() < 0.2:
        return Failure(kind, None, draw.randint(0, 200))
    return Failure(kind, draw.choice(operations), draw.choice([0, 0, 0, 1, 1, 2, 3, 5, 8, 13, 21]))


# What must be there --------------------------------------------------------------------------------------------------


def expected(scenario: Scenario, plans: Mapping[int, Planned]) -> dict[str, Counter[str]]:
    """What each output must hold, by its folder: the reference evaluator on the events that came in time."""
    job = scenario.job()
    in_time: list[Mapping[str, Any]] = []
    late: list[Mapping[str, Any]] = []
    bad: Counter[str] = Counter()
    for batch in sorted(plans):
        for name in plans[batch].files:
            given, watermark = scenario.inbox[name], plans[batch].watermark
            for event in given.events:
                (late if watermark > 0 and event["ts"] < watermark else in_time).append(event)
            bad.update(given.bad)
    # An event that two groups of queries could use is late to both.
    wanted = {"late": Counter(_shown(event) for types in job.wanted for event in late if event["type"] in types)}
    wanted["bad"] = bad
    table = pa.Table.from_pylist([dict(event) for event in in_time], COLUMNS)
    for query in scenario.queries:
        made = table_outputs(table, [query], schema=Schema())
        wanted[str(query.name)] = Counter(made.matches.column("match_id").to_pylist())
        if made.timeouts is not None:
            wanted[f"timeouts-{query.name}"] = Counter(map(_named, made.timeouts.to_pylist()))
    return wanted


def _shown(row: Mapping[str, Any]) -> str:
    return json.dumps(row, sort_keys=True)


def rows_in(folder: Path) -> Counter[str]:
    """What a reader finds: a folder whose name begins with a dot is not there for it."""
    rows: Counter[str] = Counter()
    for batch in folder.glob("batch=*"):
        rows.update(whole_batch(batch) or ())
    return rows


def whole_batch(folder: Path) -> list[str] | None:
    """The rows of one batch; None when it is not whole."""
    files = sorted(folder.glob("part-*"))
    if not files or not (folder / "_SUCCESS").exists():
        return None
    rows: list[str] = []
    for file in files:
        try:
            rows += [_named(json.loads(line)) for line in file.read_text().splitlines()]
        except (ValueError, TypeError):
            return None
    return rows or None


def _named(row: Mapping[str, Any]) -> str:
    """A match by its id, a bad row by its text, anything else by all of it."""
    return str(row.get("match_id") or row.get("text") or _shown(row))


# The run -------------------------------------------------------------------------------------------------------------


class Quiet:
    """A report that nobody reads."""

    def stage(self, text: str, tasks: object = None) -> AbstractContextManager[None]:
        return nullcontext()

    def show(self, *given: object) -> None: ...

    def say(self, text: str) -> None: ...

    def batch(self, batch: object, totals: object) -> None: ...


@dataclass
class StreamRun:
    """A stream on a disk that fails, process after process."""

    folder: Path
    draw: random.Random
    tally: Tally = field(default_factory=Tally)

    def __post_init__(self) -> None:
        self.scenario = drawn_scenario(self.draw)
        self.job = self.scenario.job()
        (self.folder / "in").mkdir(parents=True)
        (self.folder / "disk").mkdir()
        self.disk = Disk(self.folder / "disk", self.draw, losing=self.draw.choice(LOSING), place=place_of)
        self.lives = 0
        self.scenario.more_files(self.draw)
        self._begin()

    def _begin(self) -> None:
        """A new checkpoint, and folders of its own."""
        self.lives += 1
        self.life = f"life{self.lives}"
        self.plans: dict[int, Planned] = {}
        queries = "".join(
            f"[[queries]]\nname = '{query.name}'\ntext = '{query.text}'\n" for query in self.scenario.queries
        )
        file = self.folder / "pipeline.toml"
        file.write_text(PIPELINE.format(queries=queries, life=self.life, delay=self.scenario.delay))
        self.pipeline = read_pipeline(file)
        self.targets = targets_of(self.pipeline)

    def go(self) -> Tally:
        with self._simulated():
            while True:
                failure = drawn_failure(self.draw) if self.tally.failures.total() < _FAILURES else None
                if failure is None:
                    self.scenario.last_file()
                done = self._process(failure)
                if (done and failure is None) or len(self.tally.wrong) > MOST_WRONG:
                    break
                if done:
                    self.scenario.more_files(self.draw)
        self.disk.restart(None)
        self.disk.check()
        self._compare(ended=True)
        return self.tally

    def _process(self, failure: Failure | None) -> bool:
        """One process, to its end or to what ends it; whether it has done all there is."""
        dark = self.disk.dark
        self.disk.restart(failure)
        if dark:
            self._look_everywhere()
        self.disk.look = self._look
        self.tally.runs += 1
        lost_power = self.tally.failures["power"]
        done, problem = False, None
        try:
            with self.disk.mounted():
                stream_running.run_stream(self.pipeline, Quiet(), None)
            done = True
        except Killed:
            pass
        except Exception as raised:
            problem = raised
        finally:
            self.disk.look = lambda path: None
        self._count()
        if problem is not None:
            self._ended_by(problem, lost_power)
        return done

    def _count(self) -> None:
        if self.disk.hit is not None:
            self.tally.failures[self.disk.hit.kind] += 1
            self.tally.hits[self.disk.hit.operation, self.disk.hit.place] += 1

    def _lost_task(self) -> None:
        """A lost task is no end: the process goes on to its next failure."""
        self._count()
        self.disk.hit = None
        self.disk.arm(drawn_failure(self.draw))

    def _ended_by(self, problem: Exception, lost_power: int) -> None:
        if isinstance(problem, Damaged) and lost_power:
            # As the documentation has it: Spark does not sync its state, and one begins with a new checkpoint.
            self.tally.counts["checkpoints begun anew"] += 1
            self._compare(ended=False)
            self.scenario.inbox.clear()
            self.scenario.more_files(self.draw)
            self._begin()
        elif isinstance(problem, TaskFailed):
            self.tally.counts["tasks that lost all their workers"] += 1
        elif self.disk.hit is None:
            self.tally.wrong.append(f"ended by itself: {first_line(problem)}")
        elif not isinstance(problem, (KleeneError, SparkStopped)):
            said = first_line(problem)
            self.tally.wrong.append(f"an error without a code after {self.disk.hit}: {said}")

    @contextmanager
    def _simulated(self) -> Iterator[None]:
        with (
            mock.patch.object(stream_running, "bound_stream", self._bound),
            mock.patch.object(stream_running, "_POLL_SECONDS", 0),
            mock.patch.object(live_slot, "_LEAST_LOG", self.draw.choice([0, 1 << 18])),
            mock.patch.object(processor, "_PIECE", self.draw.choice([300, 8 << 20])),
        ):
            yield

    def _bound(self, pipeline: Pipeline, report: object, session: object) -> Any:
        check_places(pipeline, self.targets)
        if self.draw.random() < 0.1:
            self._contend()
        live = SimulatedLive(self.job, self.scenario.inbox, self.plans, self.disk, self._lost_task)
        files = FileChecks(pipeline)
        return stream_running.BoundStream(pipeline, None, (), self.targets, live, files)  # type: ignore[arg-type]

    def _contend(self) -> None:
        """Another run that comes meanwhile is refused."""
        # A disk that has refused a lock keeps nobody out.
        if self.disk.hit is None:
            held, self.disk.failure = self.disk.failure, None
            try:
                with one_run([checkpoint_place(self.pipeline)]):
                    self.tally.wrong.append("a second run was let in")
            except RunInProgress:
                self.tally.counts["second runs refused"] += 1
            self.disk.failure = held

    # Readers

    def _look(self, path: Path) -> None:
        """What a reader finds is whole, whenever he looks: at the batch that an operation has to do with."""
        below = path.relative_to(self.disk.root).parts
        if len(below) > 2 and below[2].startswith("batch="):
            self._look_at(self.disk.root.joinpath(*below[:3]))

    def _look_everywhere(self) -> None:
        for batch in self.disk.root.glob("*/*/batch=*"):
            self._look_at(batch)

    def _look_at(self, batch: Path) -> None:
        self.tally.counts["looks of a reader"] += 1
        if whole_batch(batch) is None:
            self.tally.wrong.append(f"a reader found half of {batch.relative_to(self.disk.root)}")

    def _compare(self, *, ended: bool) -> None:
        wanted = expected(self.scenario, self.plans)
        for target in self.targets:
            assert target.local is not None
            name = target.local.name
            kind = "matches" if re.fullmatch(r"q\d", name) else name.split("-")[0]
            got = rows_in(target.local)
            self.tally.outputs.setdefault(kind, Rows()).add(wanted[name], got, ended=ended)


def first_line(problem: Exception) -> str:
    """What ended a run, without the folder that it ran in."""
    return re.sub(r"/\S*/disk/", "", f"{type(problem).__name__}: {problem}".splitlines()[0])


def place_of(path: str) -> str:
    """What a file of a stream is for."""
    for pattern, place in _PLACES:
        if re.search(pattern, path):
            return place
    return "folder above"


_PLACES = (
    (r"\.lock$", "lock"),
    (r"^store$", "state"),
    (r"-state/kleene-slots|-state/\.kleene-slots", "slot record"),
    (r"-state/kleene", "record"),
    (r"-state/offsets", "offset log"),
    (r"-state/commits", "commit log"),
    (r"-state/sources", "source log"),
    (r"-state/state", "state store"),
    (r"_kleene\.json", "mark"),
    (r"/\.?batch=|\.staging|\.old", "results"),
)


def run_stream_seed(folder: Path, seed: int) -> Tally:
    return StreamRun(folder, random.Random(f"stream {seed}")).go()
