"""Runs physical plans over batches of Arrow data: `Engine` is the one to use."""

from kleene.engine.engine import Engine
from kleene.engine.output.outputs import EngineOutputs

__all__ = ["Engine", "EngineOutputs"]
