"""Compile all kernels for the baseline of this kind of machine, for wheels to bring along.

`python -m kleene.engine.baseline_kernels` writes them beside the kernels' sources (`kernels/shipped`), where this
installation uses them, too; a wheel that is built then takes them along, and says for which Python and system it is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kleene.engine.warming import VARIABLE
from kleene.kernels import shipped
from kleene.kernels.shipped import Baseline
from kleene.kernels.stamp import shipped_stamp_name

# One from the front and one from the end of the list: each uses what the other has kept.
_HALVES = ("warm", "help_from_the_end")
_PROGRAM = "import sys; sys.path.insert(0, {0!r}); from kleene.engine import warm; warm.{1}()"


def compile_baseline() -> Path | None:
    """Compile kernels unless these are shipped already; their folder, or None where the machine has no baseline."""
    baseline = shipped.baseline()
    if baseline is None:
        return None
    stamp = shipped.FOLDER / shipped_stamp_name(baseline)
    if not stamp.exists():
        with tempfile.TemporaryDirectory(prefix="kleene-kernels-") as cache:
            _compile(baseline, Path(cache))
            shutil.rmtree(shipped.FOLDER, ignore_errors=True)
            shipped.FOLDER.mkdir()
            for file in Path(cache).glob("*/*.nb[ic]"):
                shutil.copy(file, shipped.FOLDER)
        stamp.touch()
    return shipped.FOLDER


def _compile(baseline: Baseline, cache: Path) -> None:
    """Run what needs every kernel, with Numba told of the baseline instead of this processor."""
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(cache),
        "NUMBA_CPU_NAME": baseline.processor,
        "NUMBA_CPU_FEATURES": "",
        VARIABLE: "now",
    }
    package = str(Path(__file__).parents[2])
    halves = [
        subprocess.Popen([sys.executable, "-P", "-c", _PROGRAM.format(package, half)], cwd=cache, env=environment)
        for half in (_HALVES if (os.cpu_count() or 1) > 1 else _HALVES[:1])
    ]
    try:
        if halves[0].wait() != 0:
            raise RuntimeError("the kernels could not be compiled: what is above says why")
    finally:
        for half in halves:
            half.kill()
            half.wait()


def main() -> None:
    """For `make setup` and whoever builds wheels."""
    began = time.perf_counter()
    folder = compile_baseline()
    if folder is None:
        print("no baseline is known for this kind of machine: kernels are compiled where they are used")  # noqa: T201
        return
    print(f"kernels for the baseline are kept in {folder} ({time.perf_counter() - began:.0f} s)")  # noqa: T201


if __name__ == "__main__":
    main()
