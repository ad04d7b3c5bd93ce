"""Every figure and table of the three papers' evaluations (`make bench-papers`): what the paper says, what is seen.

The papers' own alternatives are compiled loops as the product's are (`bench/papers/baselines`), and find the same
number of matches over the same events, or the run ends. Ratios are within this run; on a busy machine they are noisy.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from bench.measure import header
from bench.papers import sase, sase_joins, sase_plus, sase_plus_merging, sase_predicates, zstream
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
    "sase+8a-8d-8f": sase_plus.strategies,
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
    arguments = given.parse_args()
    chosen = [name for name in PARTS if not arguments.only or name.startswith(tuple(arguments.only))]
    if not chosen:
        given.error(f"no part {', '.join(arguments.only)}")
    logging.getLogger("kleene").setLevel(logging.ERROR)
    pa.set_cpu_count(1)
    began = time.perf_counter()
    print(header("numba", "numpy", "pyarrow") + "; one thread")
    findings: list[Finding] = []
    for number, name in enumerate(chosen, 1):
        started, processor = time.perf_counter(), time.process_time()
        part = PARTS[name](QUICK if arguments.quick else FULL)
        print("\n" + "\n".join(finding.text() for finding in part))
        findings += part
        spent = f"{time.perf_counter() - started:.0f} s, {time.process_time() - processor:.0f} s of the processor"
        print(f"({name}: {spent}; {number} of {len(chosen)})", flush=True)
    print(f"\n{time.perf_counter() - began:.0f} s in all, {time.process_time():.0f} s of the processor\n")
    print(last_table(findings))
    if arguments.quick:
        print("streams this short say nothing about directions")
    if arguments.markdown:
        arguments.markdown.write_text(markdown(findings), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
