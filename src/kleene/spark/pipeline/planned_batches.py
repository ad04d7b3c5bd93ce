"""Spark's plan of each batch of a stream, on the disk before the results of the batch are.

A batch that is given again has the same contents because Spark has written down which events it takes, but Spark does
not sync what it writes. Were that lost and the results kept, the batch would be planned anew with other events, whose
results would not be written: those of its number are there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from kleene.durable import sync, sync_names

# Which events a batch takes, and which files of a folder those are.
_LOGS = ("offsets", "sources/*")


@dataclass
class PlannedBatches:
    """The logs in a checkpoint; without a folder, on other file systems, their own promises hold."""

    checkpoint: Path | None
    _synced: set[Path] = field(default_factory=set)
    # The logs whose folders are on the disk by their names.
    _named: set[Path] = field(default_factory=set)

    def sync(self) -> None:
        """Sync what Spark has written since the last call."""
        folders = [] if self.checkpoint is None else [log for name in _LOGS for log in self.checkpoint.glob(name)]
        for folder in folders:
            present = {file for file in folder.iterdir() if not file.name.startswith(".")}
            new = present - self._synced
            for file in new:
                sync(file)
            if new:
                sync_names(folder)
            self._synced = {file for file in self._synced if file.parent != folder} | present
            if folder not in self._named:
                self._sync_folder(folder)

    def _sync_folder(self, folder: Path) -> None:
        """Sync the name of a log, and those of the folders that it lies in, which Spark has made."""
        assert self.checkpoint is not None
        for above in folder.parents:
            sync_names(above)
            if above == self.checkpoint:
                break
        self._named.add(folder)
