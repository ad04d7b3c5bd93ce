"""The page of all findings (docs/papers.md): its tables are written by the run that it tells of, never by hand."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.papers.report import Finding, markdown

BEGIN = "<!-- From here to the end of the tables `python -m bench.papers --write docs/papers.md` writes. -->"
END = "<!-- The end of what is written. -->"
PAPERS = ("SASE", "SASE+", "ZStream")


class NoPage(SystemExit):
    """The file is not one that tables can be written to."""


@dataclass(frozen=True)
class Circumstances:
    """When a run was, how long it took, and what the machine did beside it.

    load   the machine's load before the run, and at its end
    """

    day: str
    cores: int
    seconds: float
    processor: float
    load: tuple[float, float]

    @staticmethod
    def now(load_before: float, seconds: float, processor: float) -> Circumstances:
        day = datetime.now(UTC).strftime("%-d %B %Y")
        return Circumstances(day, os.cpu_count() or 1, seconds, processor, (load_before, os.getloadavg()[0]))

    def text(self) -> str:
        return (
            f"The tables are of one run of all parts on {self.day}, on {self.cores} cores, in {self.seconds / 60:.1f} "
            f"minutes with {self.processor / 60:.1f} minutes of the processor; the machine's load was "
            f"{self.load[0]:.1f} before the run and {self.load[1]:.1f} at its end."
        )


def written(page: str, findings: Sequence[Finding], circumstances: Circumstances) -> str:
    """The page with these findings instead of those that it has."""
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise NoPage(f"no place for tables: the page needs the lines\n{BEGIN}\n{END}")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{_tables(findings, circumstances)}\n{END}{after}"


def write(path: Path, findings: Sequence[Finding], circumstances: Circumstances) -> None:
    path.write_text(written(path.read_text(encoding="utf-8"), findings, circumstances), encoding="utf-8")


def _tables(findings: Sequence[Finding], circumstances: Circumstances) -> str:
    others = [finding.figure for finding in findings if not finding.same]
    count = f"{len(findings) - len(others)} of {len(findings)} claims are seen in the paper's direction"
    parts = [circumstances.text(), f"{count}; not {'; '.join(others)}." if others else f"{count}."]
    for paper in PAPERS:
        own = [finding for finding in findings if finding.figure.partition(" ")[0] == paper]
        parts += [f"## {paper}", markdown(own).rstrip()]
    return "\n\n".join(parts) + "\n"
