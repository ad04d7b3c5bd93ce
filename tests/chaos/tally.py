"""What chaos counts: failures by kind and by the operation that they hit, and the rows of each output."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Rows:
    """The rows of an output: those that there should be, those that there are."""

    wanted: int = 0
    got: int = 0
    missing: int = 0
    extra: int = 0

    def add(self, wanted: Counter[str], got: Counter[str], *, ended: bool = True) -> None:
        """`ended`: otherwise the stream was given up, and what it had not written is not wanted."""
        wanted = wanted if ended else wanted & got
        self.wanted += wanted.total()
        self.got += got.total()
        self.missing += (wanted - got).total()
        self.extra += (got - wanted).total()


@dataclass
class Tally:
    """Counts of one seed, or of many."""

    runs: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    # By operation and by what the file is for.
    hits: Counter[tuple[str, str]] = field(default_factory=Counter)
    outputs: dict[str, Rows] = field(default_factory=dict)
    # How often a new checkpoint had to be begun, a reader looked, another run was refused.
    counts: Counter[str] = field(default_factory=Counter)
    # What must not be: results that a reader sees half, errors without a code, a run that ends by itself.
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.runs += other.runs
        self.failures += other.failures
        self.hits += other.hits
        self.counts += other.counts
        self.wrong += other.wrong
        for name, rows in other.outputs.items():
            own = self.outputs.setdefault(name, Rows())
            for what in vars(rows):
                setattr(own, what, getattr(own, what) + getattr(rows, what))

    @property
    def operations(self) -> Counter[str]:
        by_operation: Counter[str] = Counter()
        for (operation, _), number in self.hits.items():
            by_operation[operation] += number
        return by_operation

    @property
    def is_right(self) -> bool:
        return not self.wrong and not any(rows.missing or rows.extra for rows in self.outputs.values())

    def line(self) -> str:
        """One seed in one line."""
        rows = " ".join(f"{name} {r.wanted}/{r.got}/{r.missing}/{r.extra}" for name, r in sorted(self.outputs.items()))
        return f"{_listed(self.failures)} | hit: {_listed(self.operations)} | {rows}"

    def report(self) -> str:
        """Everything, in a few tables."""
        lines = [f"{self.runs:,} runs, {self.failures.total():,} failures: {_listed(self.failures)}"]
        if self.counts:
            lines.append(", ".join(f"{number:,} {name}" for name, number in sorted(self.counts.items())))
        places = sorted({place for _, place in self.hits})
        if places:
            lines += ["", f"{'operation hit':16} {'all':>7}  of which"]
        for operation, number in sorted(self.operations.items(), key=lambda item: -item[1]):
            of_which = {place: self.hits[operation, place] for place in places if self.hits[operation, place]}
            lines.append(f"{operation:16} {number:7,}  {_listed(Counter(of_which))}")
        lines += ["", f"{'output':16} {'wanted':>9} {'got':>9} {'missing':>9} {'extra':>9}"]
        for name, rows in sorted(self.outputs.items()):
            lines.append(f"{name:16} {rows.wanted:9,} {rows.got:9,} {rows.missing:9,} {rows.extra:9,}")
        lines += [f"wrong: {text}" for text in self.wrong[:20]]
        if len(self.wrong) > 20:
            lines.append(f"wrong: {len(self.wrong) - 20:,} more")
        return "\n".join(lines)


def _listed(counts: Counter[str]) -> str:
    return (
        ", ".join(f"{number:,} {name}" for name, number in sorted(counts.items(), key=lambda item: -item[1])) or "none"
    )
