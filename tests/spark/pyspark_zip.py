"""PySpark's zip with compiled modules in it, for `make setup`: `python -m tests.spark.pyspark_zip`.

Processes that Spark starts import PySpark from a zip of sources, which each of them compiles again: a second for every
start of a stream. Python takes a compiled module of a zip where it is of the same Python, and else the source.
"""

from __future__ import annotations

import importlib.util
import os
import py_compile
import tempfile
import zipfile
from pathlib import Path


def compile_zip(sources: Path) -> None:
    """Put compiled modules beside the sources of a zip, once. PySpark's own tests stay as they are."""
    with zipfile.ZipFile(sources) as before, tempfile.TemporaryDirectory(dir=sources.parent) as folder:
        if any(name.endswith(".pyc") for name in before.namelist()):
            return
        draft, module, compiled = (Path(folder) / name for name in ("zip", "module.py", "module.pyc"))
        with zipfile.ZipFile(draft, "w") as after:
            for name in before.namelist():
                after.writestr(name, before.read(name))
                if name.endswith(".py") and "/tests/" not in name:
                    module.write_bytes(before.read(name))
                    never = py_compile.PycInvalidationMode.UNCHECKED_HASH
                    py_compile.compile(str(module), str(compiled), f"{sources}/{name}", invalidation_mode=never)
                    after.write(compiled, f"{name}c")
        os.replace(draft, sources)


if __name__ == "__main__":
    package = importlib.util.find_spec("pyspark")
    if package is not None and package.origin is not None:
        compile_zip(Path(package.origin).parent / "python" / "lib" / "pyspark.zip")
