"""Every figure and table of the three papers' evaluations (`make bench-papers`): what the paper says, what is seen.

The papers' own alternatives are compiled loops as the product's are (`bench/papers/baselines`), and find the same
number of matches over the same events, or the run ends. Each part runs in a process of its own, so that none has the
memory and the objects of those before it. Ratios are within this run; on a busy machine they are noisy.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from bench.measure import header
from bench.papers import (
    page,
    sase,
    sase_joins,
    sase_plus,
    sase_plus_merging,
    sase_plus_strategies,
    sase_predicates,
    zstream,
)
from bench.papers.report import Finding, last_table, markdown
from bench.papers.sides import FULL, QUICK, Effort

# Each part: its name, and how it is measured.
PARTS: dict[str, Callable[[Effort], list[Finding]]] = {
    "sase-8-9": sase.construction,
    "sase-10": sase.second_test,
    "sase-predicates": sase_predicates.more_predicates,
    "sase-windows": sase_predicates.windows,
    "sase-negation": sase_predicates.negations,
    "sase-11": sase_joins.lengths,
    "sase-12": sase_joins.domains,
    "sase+8a-8d-8f": sase_plus_strategies.strategies,
    "sase+8b-8c": sase_plus.windows,
    "sase+8e": sase_plus.non_overlapping,
    "sase+8g": sase_plus_merging.merging,
    "sase+p055": sase_plus_merging.slower_rise,
    "zstream-8-9": zstream.query_4,
    "zstream-10-11": zstream.query_5,
    "zstream-12-13": zstream.query_6,
    "zstream-14": zstream.adaptation,
    "zstream-15-16": zstream.query_7,
    "zstream-17": zstream.web,
    "zstream-memory": zstream.peak_memory,
}


def main() -> int:
    given = argparse.ArgumentParser(prog="python -m bench.papers", description=__doc__)
    names = f"parts whose names begin so, of {', '.join(PARTS)}"
    given.add_argument("--only", nargs="+", metavar="part", default=[], help=names)
    given.add_argument("--quick", action="store_true", help="tiny streams: whether everything runs, not how fast")
    given.add_argument("--markdown", type=Path, metavar="file", help="write the table of all findings there too")
    given.add_argument("--write", type=Path, metavar="page", help="write the tables into this page: docs/papers.md")
    given.add_argument("--into", type=Path, metavar="file", help="run the part in this process; its findings as JSON")
    arguments = given.parse_args()
    chosen = [name for name in PARTS if not arguments.only or name.startswith(tuple(arguments.only))]
    if not chosen:
        given.error(f"no part {', '.join(arguments.only)}")
    if arguments.write and (arguments.quick or len(chosen) < len(PARTS)):
        given.error("a page is written by one run of all parts, in full length")
    if arguments.into:
        if len(chosen) != 1:
            given.error("--into is for one part")
        return _run_here(chosen[0], arguments.quick, arguments.into)
    began, load = time.perf_counter(), os.getloadavg()[0]
    print(header("numba", "numpy", "pyarrow") + f"; one thread, a process a part; load {load:.1f}", flush=True)
    findings: list[Finding] = []
    for number, name in enumerate(chosen, 1):
        started, processor = time.perf_counter(), _processor()
        findings += _in_a_process(name, arguments.quick)
        spent = f"{time.perf_counter() - started:.0f} s, {_processor() - processor:.0f} s of the processor"
        print(f"({name}: {spent}; {number} of {len(chosen)})", flush=True)
    circumstances = page.Circumstances.now(load, time.perf_counter() - began, _processor())
    print(f"\n{circumstances.seconds:.0f} s in all, {circumstances.processor:.0f} s of the processor\n")
    print(last_table(findings))
    if arguments.quick:
        print("streams this short say nothing about directions")
    if arguments.markdown:
        arguments.markdown.write_text(markdown(findings), encoding="utf-8")
    if arguments.write:
        page.write(arguments.write, findings, circumstances)
    return 0


def _processor() -> float:
    """Seconds of the processor that parts have taken."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _in_a_process(name: str, quick: bool) -> list[Finding]:
    """The findings of a part; the run ends where it fails."""
    with TemporaryDirectory() as folder:
        into = Path(folder) / "findings.json"
        command = [sys.executable, "-m", "bench.papers", "--only", name, "--into", str(into), *(["--quick"] * quick)]
        made = subprocess.run(command, check=False)
        if made.returncode:
            raise SystemExit(f"{name} failed")
        return [Finding(**each) for each in json.loads(into.read_text(encoding="utf-8"))]


def _run_here(name: str, quick: bool, into: Path) -> int:
    logging.getLogger("kleene").setLevel(logging.ERROR)
    pa.set_cpu_count(1)
    findings = PARTS[name](QUICK if quick else FULL)
    print("\n" + "\n".join(finding.text() for finding in findings), flush=True)
    into.write_text(json.dumps([finding.as_json() for finding in findings]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
