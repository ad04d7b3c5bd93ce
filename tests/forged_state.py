"""Forged state, tried in processes of their own: `python -m tests.forged_state FIRST COUNT`.

Snapshots of engines, and in every fifth case what a stream keeps of a slot. Nothing may end a process, and nothing may
be raised but an error of Kleene's. A child prints which one it tries before it does, so that whoever started it knows
which one ended it.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from unittest import mock

# A child ends after so many, and may take so many seconds and so much memory: what asks for more is an exception.
_PORTION, _SECONDS, _BYTES = 2500, 3600, 12 << 30
# Without its contract a state may also keep a child busy for ever: so many seconds of processor end it.
_UNCHECKED_SECONDS = 20


@dataclass
class Became:
    """What became of forged states: how many of each kind, and which ones ended a process or raised something raw."""

    counts: Counter[str] = field(default_factory=Counter)
    ended: list[tuple[int, int]] = field(default_factory=list)
    raw: list[tuple[int, str]] = field(default_factory=list)

    def report(self) -> str:
        listed = [f"{count:6d}  {what}" for what, count in sorted(self.counts.items())]
        refused = sum(count for what, count in self.counts.items() if "refused" in what)
        total = sum(self.counts.values()) + len(self.ended) + len(self.raw)
        ends = f"{total} forged, {refused} refused, {len(self.ended)} signals, {len(self.raw)} raw exceptions"
        wrong = [f"seed {seed} ended its process with {code}" for seed, code in self.ended]
        wrong += [f"seed {seed}:\n{trace}" for seed, trace in self.raw]
        return "\n".join([*listed, *wrong, ends])


def tried_in_children(first: int, count: int, *, checked: bool = True) -> Became:
    """`checked`: whether Kleene holds a state against its contract, as it must."""
    became = Became()
    at, end = first, first + count
    while at < end:
        how = "child" if checked else "unchecked"
        command = [sys.executable, "-m", "tests.forged_state", how, str(at), str(min(_PORTION, end - at))]
        child = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS)
        for line in child.stdout.splitlines():
            said = json.loads(line)
            if "trying" in said:
                at = said["trying"] + 1
            elif "raw" in said:
                became.raw.append((at - 1, said["raw"]))
            else:
                became.counts[said["became"]] += 1
        if child.returncode:
            became.ended.append((at - 1, child.returncode))
            if not child.stdout:
                raise RuntimeError(child.stderr)
    return became


def _child(first: int, count: int) -> None:
    from tests.engine import forging
    from tests.spark.streaming import forging as slot_forging

    resource.setrlimit(resource.RLIMIT_AS, (_BYTES, _BYTES))
    warnings.simplefilter("ignore")
    for seed in range(first, first + count):
        print(json.dumps({"trying": seed}), flush=True)
        try:
            print(json.dumps({"became": (slot_forging if seed % 5 == 0 else forging).tried(seed)}), flush=True)
        except Exception:
            print(json.dumps({"raw": traceback.format_exc()}), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "child":
        _child(int(sys.argv[2]), int(sys.argv[3]))
    elif sys.argv[1] == "unchecked":
        resource.setrlimit(resource.RLIMIT_CPU, (_UNCHECKED_SECONDS, _UNCHECKED_SECONDS))
        with mock.patch.multiple("kleene.engine.state.state_contract", require=lambda holds, problem: None):
            _child(int(sys.argv[2]), int(sys.argv[3]))
    else:
        all_became = tried_in_children(int(sys.argv[1]), int(sys.argv[2]))
        print(all_became.report())
        sys.exit(bool(all_became.ended or all_became.raw))
