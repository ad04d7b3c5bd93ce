"""One stream on Spark drawn from a seed, whose processes are killed while it runs: `run_real_seed`.

Each process of it loses workers, and its end is a kill of the driver, of the JVM, of both at once, or of both between
two writes of a batch; the last one finishes. Then every output holds each of its rows exactly once.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.chaos.processes import ended, jvm_of, kill, workers_of
from tests.chaos.tally import Rows, Tally
from tests.users.places import briefly

import kleene

PER_FILE, DELAY = 400, 50
QUERIES = {
    "pairs": "PATTERN SEQ(A a, B b) WHERE [x] WITHIN 100",
    "alone": "PATTERN SEQ(A a, C c, !(B b)) WHERE [x] AND a.v < 20 WITHIN 100",
    "three": "PATTERN SEQ(A a, B b, C c) WHERE a.v = 1 AND b.v = 2 WITHIN 60 TIMEOUTS INTO unmet",
}
PIPELINE = """\
[[sources]]
name = "readings"
kind = "json"
path = "in"
schema = {{ type = "string", ts = "long", x = "long", v = "long" }}
options = {{ maxFilesPerTrigger = 1 }}

{queries}
[[sinks]]
kind = "json"
path = "out/{{query}}"

[[sinks]]
kind = "json"
path = "out/timeouts-{{query}}"
output = "timeouts"

[[sinks]]
kind = "json"
path = "out/late"
output = "late"

[bad_rows]
path = "out/bad"

[stream]
checkpoint = "state"
delay = {delay}
available_now = true
"""
ENDS = ("driver", "jvm", "driver and jvm", "between two writes")
# A JVM without its driver ends within this time, and a stream is done with so many processes.
_PATIENCE = 60.0
_MOST_PROCESSES = 12

Event = dict[str, Any]


@dataclass
class RealRun:
    """A stream, its processes, and what they were told.

    ends     how the processes end but for the last one
    workers  how many workers each process loses
    """

    folder: Path
    draw: random.Random
    ends: tuple[str, ...]
    workers: int
    tally: Tally = field(default_factory=Tally)
    # JVMs whose driver was killed: they end by themselves.
    _orphans: list[int] = field(default_factory=list)

    @property
    def files(self) -> int:
        """More than the processes get to before they are killed."""
        return (len(self.ends) + 1) * (self.workers // 2 + 2) + 2

    def go(self) -> Tally:
        files, poison = self._files()
        queries = "".join(f'[[queries]]\nname = "{name}"\ntext = "{text}"\n\n' for name, text in QUERIES.items())
        (self.folder / "pipeline.toml").write_text(PIPELINE.format(queries=queries, delay=DELAY))
        ends: list[str | None] = [*self.ends, None]
        done = False
        while ends and not done and self.tally.runs < _MOST_PROCESSES:
            how = self._process(ends[0])
            done = how == "done"
            # One that fails by itself is begun again.
            if how == "killed":
                ends.pop(0)
        if not done:
            self.tally.wrong.append("the stream was never done")
        for jvm in self._orphans:
            if not ended(jvm, _PATIENCE):
                self.tally.wrong.append("a JVM outlived its driver")
                kill(jvm)
        self._compare(files, poison)
        return self.tally

    # Processes

    def _process(self, end: str | None) -> str:
        """One process, which loses workers and then its life, if `end` says so: whether it is `done`, was `killed`, or
        `failed`, as it may when it loses too many workers at a time.
        """
        self.tally.runs += 1
        between = ["0"] if end == "between two writes" else []
        with self._driver(between) as driver:
            said = _Said(driver)
            lost = 0
            while (line := said.next()) is not None:
                if line == "finished":
                    return "done"
                if line.startswith("between"):
                    self._killed("driver and jvm", "between two writes", said, lambda: self._kill_group(driver))
                    return "killed"
                if between or not line.startswith("done"):
                    continue
                if lost < self.workers:
                    for moment in sorted(self.draw.random() for _ in range(2)):
                        said.wait(moment)
                        lost += self._kill_worker(driver.pid, said)
                elif end is not None:
                    said.wait(self.draw.random())
                    return self._end(end, driver, said)
            self.tally.counts["processes that ended with an error"] += 1
        return "failed"

    def _kill_worker(self, driver: int, said: _Said) -> bool:
        workers = workers_of(driver)
        return bool(workers) and self._killed("worker", "in a batch", said, lambda: kill(self.draw.choice(workers)))

    def _end(self, end: str, driver: subprocess.Popen[str], said: _Said) -> str:
        jvm = jvm_of(driver.pid)
        if jvm is None:
            return "failed"
        if end == "driver":
            # The next process may be there before its JVM has ended.
            self._orphans.append(jvm)
            self._killed(end, "in a batch", said, lambda: kill(driver.pid))
        elif end == "jvm":
            self._killed(end, "in a batch", said, lambda: kill(jvm))
            with suppress(subprocess.TimeoutExpired):
                driver.wait(60)
        else:
            self._killed(end, "in a batch", said, lambda: self._kill_group(driver))
        return "killed"

    def _killed(self, what: str, moment: str, said: _Said, does: Any) -> bool:
        if not does():
            return False
        self.tally.failures[what] += 1
        self.tally.hits[moment, what] += 1
        self.tally.counts["kills after the first finished batch"] += said.batches > 0 or self._batches_before
        return True

    @property
    def _batches_before(self) -> bool:
        return any((self.folder / "state" / "commits").glob("[0-9]*"))

    @staticmethod
    def _kill_group(driver: subprocess.Popen[str]) -> bool:
        os.killpg(driver.pid, signal.SIGKILL)
        return True

    @contextmanager
    def _driver(self, between: list[str]) -> Iterator[subprocess.Popen[str]]:
        command = [sys.executable, "-m", "tests.chaos.real_driver", str(self.folder / "pipeline.toml"), *between]
        with (self.folder / "stderr").open("a") as errors:
            driver = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
                env={**os.environ, **briefly()},
                cwd=Path(__file__).parents[2],
            )
            try:
                yield driver
            finally:
                if driver.poll() is None:
                    self._kill_group(driver)
                driver.wait()
                assert driver.stdout is not None
                driver.stdout.close()

    # The stream

    def _files(self) -> tuple[list[list[Event]], list[list[str]]]:
        """Events by file, some of them late, and lines that are none; the last file only moves time on."""
        files, poison = [], []
        for number in range(self.files):
            begin = 1_000 + number * PER_FILE // 4
            events = [self._event("ABCD", begin + place // 4) for place in range(PER_FILE)]
            events += [self._event("A", begin - self.draw.randrange(500, 900)) for _ in range(5) if number > 2]
            files.append(events)
            poison.append([f'{{"type": "A", "ts": "{number} o\\u2019clock {place}"}}' for place in range(3)])
        files.append([{"type": "Z", "ts": 10**8, "x": 0, "v": 0}])
        poison.append([])
        (self.folder / "in").mkdir(parents=True)
        for number, (events, lines) in enumerate(zip(files, poison, strict=True)):
            file = self.folder / "in" / f"{number:03}.json"
            file.write_text("".join(f"{line}\n" for line in [*map(json.dumps, events), *lines]))
            os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
        return files, poison

    def _event(self, types: str, ts: int) -> Event:
        moved = ts + self.draw.randrange(DELAY // 2)
        return {
            "type": self.draw.choice(types),
            "ts": moved,
            "x": self.draw.randrange(40),
            "v": self.draw.randrange(50),
        }

    def _compare(self, files: list[list[Event]], poison: list[list[str]]) -> None:
        in_time, late = apart(files)
        table = pa.Table.from_pylist(in_time)
        # One that two groups of queries could use stands there once for each: `three` has no key, and asks for v = 1.
        late += [event for event in late if event["type"] == "A" and event["v"] == 1]
        self._add("late", Counter(map(_shown, late)), Counter(map(_shown, self._rows("late"))))
        self._add("bad", Counter(line for lines in poison for line in lines), self._named("bad", "text"))
        for name, text in QUERIES.items():
            made = kleene.outputs(table, kleene.query(text, name=name))
            self._add(name, Counter(made.matches.column("match_id").to_pylist()), self._named(name, "match_id"))
            if made.timeouts is not None:
                got = Counter(map(_shown, self._rows(f"timeouts-{name}")))
                self._add("timeouts", Counter(map(_shown, made.timeouts.to_pylist())), got)

    def _add(self, name: str, wanted: Counter[str], got: Counter[str]) -> None:
        self.tally.outputs.setdefault(name, Rows()).add(wanted, got)

    def _named(self, name: str, column: str) -> Counter[str]:
        return Counter(row[column] for row in self._rows(name))

    def _rows(self, name: str) -> list[Event]:
        """What a reader finds: a folder whose name begins with a dot is not there for it."""
        files = sorted((self.folder / "out" / name).glob("batch=*/part-*"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]


class _Said:
    """What a driver says, line by line, and how many batches it has done."""

    def __init__(self, driver: subprocess.Popen[str]) -> None:
        assert driver.stdout is not None
        self._lines, self.batches = driver.stdout, 0
        self._last, self._took = time.monotonic(), 1.0

    def wait(self, share: float) -> None:
        """Until so much of a batch is over, if it takes as long as the last one."""
        time.sleep(max(0.0, self._last + share * min(self._took, 20) - time.monotonic()))

    def next(self) -> str | None:
        line = self._lines.readline()
        if not line:
            return None
        if line.startswith("done"):
            now = time.monotonic()
            self.batches, self._took, self._last = self.batches + 1, now - self._last, now
        return line.rstrip("\n")


def apart(files: list[list[Event]]) -> tuple[list[Event], list[Event]]:
    """The events that come in time and those that come late: one file is one batch."""
    in_time: list[Event] = []
    late: list[Event] = []
    latest = 0
    for events in files:
        watermark = latest - DELAY
        for event in events:
            (late if watermark > 0 and event["ts"] < watermark else in_time).append(event)
        latest = max(latest, *(event["ts"] for event in events))
    return in_time, late


def _shown(row: Event) -> str:
    return json.dumps(row, sort_keys=True)


def run_real_seed(folder: Path, seed: int, *, ends: int = 3, workers: int = 6) -> Tally:
    """A stream whose processes are killed `ends` times, and lose so many workers each."""
    draw = random.Random(f"real {seed}")
    return RealRun(folder, draw, tuple(draw.sample(ENDS, ends)), workers).go()
