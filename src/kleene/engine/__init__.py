"""Runs physical plans over batches of Arrow data: `Engine` is the one to use."""

from kleene.engine.engine import Batch, Engine

__all__ = ["Batch", "Engine"]
