"""What an operator of EQL counted: `explain --analyze` and `why` show it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class OperatorCounts:
    """Counts of one operator over all batches so far.

    came      detections that came to it: left ones of `;`, runs of `+`, operands of every other
    given     detections that it gave
    served    of those that came to wait: given with what came next
    failed    what came next did not satisfy θ with them
    ended     ended by a failed detection, or by an exception itself
    unkeyed   a field of the key has no value: nothing is ever next
    expired   too old, when a batch ended
    left      waited when the input ended
    most      that waited together, when a batch ended
    looks     how many times one that waits was looked at
    """

    came: int = 0
    given: int = 0
    served: int = 0
    failed: int = 0
    ended: int = 0
    unkeyed: int = 0
    expired: int = 0
    left: int = 0
    most: int = 0
    looks: int = 0
