"""Changes of the code that chaos must notice: with one of them applied, rows are lost or readers see half a result."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from kleene import durable
from kleene.spark.pipeline.planned_batches import PlannedBatches


class _Copying:
    """The module `os`, with a copy in place of the rename."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def replace(self, draft: Path, target: Path) -> None:
        if draft.is_dir():
            target.mkdir()
            for file in sorted(draft.iterdir()):
                (target / file.name).write_bytes(file.read_bytes())
            shutil.rmtree(draft)
        else:
            target.write_bytes(draft.read_bytes())
            draft.unlink()


@contextmanager
def mutated(name: str | None) -> Iterator[None]:
    """`copy`: a commit copies; `nosync`: it does not sync before; `unplanned`: what Spark planned is not synced."""
    if name is None:
        yield
        return
    owner, attribute, other = {
        "copy": (durable, "os", _Copying()),
        "nosync": (durable, "sync", mock.Mock()),
        "unplanned": (PlannedBatches, "sync", mock.Mock()),
    }[name]
    with mock.patch.object(owner, attribute, other):
        yield


MUTATIONS = ("copy", "nosync", "unplanned")
