"""What a figure of a paper says and what is seen here, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from textwrap import fill
from typing import Any

WIDTH = 118


@dataclass(frozen=True)
class Finding:
    """One claim of a figure or table: what the paper says, what is seen, and whether both point in one direction."""

    figure: str
    paper: str
    seen: str
    same: bool
    # Why not, or why by another factor: as it was measured.
    reason: str = ""

    def text(self) -> str:
        parts = [f"paper: {self.paper}", f"seen: {self.seen}"]
        if self.reason:
            parts.append(f"reason: {self.reason}")
        body = "\n".join(fill(part, WIDTH, initial_indent="    ", subsequent_indent="      ") for part in parts)
        return f"{self.figure}: same direction {'yes' if self.same else 'NO'}\n{body}"

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"same": bool(self.same)}

    def row(self) -> str:
        cells = (self.figure, self.paper, self.seen, "yes" if self.same else "**no**", self.reason)
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def last_table(findings: Sequence[Finding]) -> str:
    """All findings in short, after their texts."""
    same = sum(finding.same for finding in findings)
    lines = [f"{'yes' if finding.same else 'NO':4}{finding.figure:26}{finding.seen}" for finding in findings]
    return "\n".join([*lines, f"{same} of {len(findings)} in the paper's direction"])


def markdown(findings: Iterable[Finding]) -> str:
    head = ["| figure | paper says | we see | same direction | reason |", "| --- | --- | --- | --- | --- |"]
    return "\n".join([*head, *(finding.row() for finding in findings)]) + "\n"


def show(title: str, columns: Sequence[str], rows: Mapping[str, Sequence[float]], note: str = "") -> None:
    """A table of figures."""
    print(f"\n{title}" + (f"\n{note}" if note else ""))
    width = max(11, *(len(name) + 2 for name in columns))
    print(f"{'':16}" + "".join(f"{name:>{width}}" for name in columns))
    for name, values in rows.items():
        print(f"{name:16}" + "".join(f"{_number(value):>{width}}" for value in values), flush=True)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"
