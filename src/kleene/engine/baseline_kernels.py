"""Compile all kernels for the baseline of this kind of machine, for wheels to bring along.

`python -m kleene.engine.baseline_kernels` writes them beside the kernels' sources (`kernels/shipped`), where this
installation uses them, too; a wheel that is built then takes them along, and says for which Python and system it is.
"""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from kleene.engine.warming import VARIABLE
from kleene.kernels import shipped
from kleene.kernels.jit import kernels
from kleene.kernels.shipped import Baseline
from kleene.kernels.stamp import shipped_stamp_name

# One from the front and one from the end of the list: each uses what the other has kept.
_HALVES = ("warm", "help_from_the_end")
_PROGRAM = "import sys; sys.path.insert(0, {0!r}); from kleene.engine import {1}; {1}.{2}()"


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
    """Run what needs every kernel, and compile some again for wider processors."""
    several = (os.cpu_count() or 1) > 1
    halves = [_begun("warm", half, baseline, cache) for half in (_HALVES if several else _HALVES[:1])]
    _wait_for_first(halves)
    wider = shipped.wider()
    if wider is not None:
        _wait_for_first([_begun("baseline_kernels", "compile_kept_ones", wider, cache)])


def _begun(module: str, function: str, baseline: Baseline, cache: Path) -> subprocess.Popen[bytes]:
    """A process whose Numba is told of a baseline instead of this processor."""
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(cache),
        "NUMBA_CPU_NAME": baseline.processor,
        "NUMBA_CPU_FEATURES": "",
        VARIABLE: "now",
    }
    program = _PROGRAM.format(str(Path(__file__).parents[2]), module, function)
    return subprocess.Popen([sys.executable, "-P", "-c", program], cwd=cache, env=environment)


def _wait_for_first(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Wait until the first has done what there is to do, and end the others."""
    try:
        if processes[0].wait() != 0:
            raise RuntimeError("the kernels could not be compiled: what is above says why")
    finally:
        for process in processes:
            process.kill()
            process.wait()


def compile_kept_ones() -> None:
    """Compile the kernels of `WIDE_MODULES` for the processor that Numba was told of, wherever another one has them."""
    for module in shipped.WIDE_MODULES:
        importlib.import_module(module)
    for kernel in kernels:
        if kernel.plain.__module__ in shipped.WIDE_MODULES:
            for signature in kernel.dispatcher._cache.signatures:
                kernel.dispatcher.compile(signature)


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
