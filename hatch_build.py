"""Wheels bring along the kernels that are compiled for the baseline of this kind of machine, where they are there.

`python -m kleene.engine.baseline_kernels` compiles them (`make wheel` does both). A wheel without them is for every
Python and system, and compiles where it is used.
"""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ShippedKernels(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        folder = None if version == "editable" else _current_kernels(Path(self.root) / "src")
        if folder is None:
            return
        build_data["force_include"][str(folder)] = "kleene/kernels/shipped"
        build_data["pure_python"] = False
        system = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"cp{sys.version_info[0]}{sys.version_info[1]}-none-{system}"


def _current_kernels(sources: Path) -> Path | None:
    """The folder of kernels that were compiled of these sources; None where they were not, or cannot be told."""
    sys.path.insert(0, str(sources))
    try:
        from kleene.kernels import shipped
        from kleene.kernels.stamp import shipped_stamp_name
    except ImportError:
        return None  # an isolated build without Numba
    finally:
        sys.path.remove(str(sources))
    baseline = shipped.baseline()
    if baseline is None or not (shipped.FOLDER / shipped_stamp_name(baseline)).exists():
        return None
    return shipped.FOLDER
