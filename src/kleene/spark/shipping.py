"""Kleene on a cluster's executors: the package and its compiled kernels in one archive that Spark unpacks there.

Kernels are found again by the content of their source, wherever the archive is unpacked, on machines with the same kind
of processor; on others they are compiled once. A zip for `--py-files` would not do: Python could import it, but neither
the grammar nor the kernels could be read from inside. Executors need Python, NumPy, Numba and PyArrow; not Kleene.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

from kleene.engine.warming import folder

# The name of the folder in an executor's working directory.
FOLDER = "kleene-archive"
_LEFT_OUT = (".pyc", ".pyo", ".lock")


def make_archive(target: Path) -> Path:
    """Write this installation of Kleene to a `.tar.gz` file."""
    package = Path(__file__).parents[1]
    kernels = package / "kernels" / "__pycache__"
    cache = folder()
    with tarfile.open(target, "w:gz") as archive:
        for path in sorted(package.rglob("*")):
            if path.is_file() and path.suffix not in _LEFT_OUT:
                archive.add(path, Path("kleene") / path.relative_to(package))
        if cache is not None and cache != kernels:
            # Kept elsewhere here, they are looked for beside the sources there.
            for path in sorted(cache.iterdir()):
                if path.suffix not in _LEFT_OUT:
                    archive.add(path, Path("kleene") / kernels.relative_to(package) / path.name)
    return target


def executor_options(archive: Path) -> dict[str, str]:
    """The settings of a session with which executors use an archive, and start Python workers that are warm."""
    return {
        "spark.archives": f"{archive}#{FOLDER}",
        "spark.executorEnv.PYTHONPATH": FOLDER,
        "spark.python.daemon.module": "kleene.spark.daemon",
    }
