"""What the slots of a stream held after its last batch, kept beside the checkpoint on this machine.

Slots report when something happens to them. A run that goes on from a checkpoint would count only those that have
reported since; with the record it begins with all of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path as File

from kleene.frames.atomic import replacing
from kleene.spark.streaming.live_slot import HELD

NAME = "kleene-slots.json"


@dataclass(frozen=True)
class SlotRecord:
    """A file of measures by slot; without a file, on other file systems, nothing is remembered."""

    file: File | None
    life: str

    def read(self) -> dict[int, Mapping[str, int]]:
        """The measures of the last run with this checkpoint; none where they are not known."""
        try:
            content = {} if self.file is None else json.loads(self.file.read_text())
        except (OSError, ValueError):
            return {}
        if content.get("life") != self.life:
            return {}
        return {int(slot): {name: int(of[name]) for name in HELD} for slot, of in content["slots"].items()}

    def write(self, slots: Mapping[int, Mapping[str, int]]) -> None:
        if self.file is not None:
            text = json.dumps({"life": self.life, "slots": {str(slot): dict(of) for slot, of in slots.items()}})
            with replacing(self.file) as stream:
                stream.write(text.encode())
