"""Functions of Kleene as they travel to Spark's Python workers.

Spark pickles a function for its tasks. One of a module of ours is pickled as a name, and a worker that lacks Kleene
fails while it reads that name, with a traceback of Spark's. `Sent` travels as a few lines of code and plain data, so it
can be read anywhere: there it looks for Kleene, and says in one sentence what is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kleene.errors import WorkersWithoutKleene


class Sent:
    """A function for tasks, as the call of a maker that runs on the worker.

    maker       a function of a module, or a class, that is called there
    arguments   what it is called with: plain data, since a worker without Kleene must be able to read it
    """

    def __init__(self, maker: Callable[..., Any], *arguments: Any) -> None:
        self._maker, self._arguments = f"{maker.__module__}:{maker.__qualname__}", arguments

    def __call__(self, batches: Any) -> Any:
        """Never called: Spark looks at this signature, and a worker has what the maker returned in its place."""
        raise NotImplementedError("it runs on Spark's workers")

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        problem = WorkersWithoutKleene.of("{python}", "{problem}")
        # An empty line ends it: Spark goes on where its quotation ends.
        return _arrival(), (self._maker, self._arguments, problem.render() + "\n")


def _arrival() -> Callable[..., Any]:
    """The function that runs on a worker; as an inner one it is pickled with its code, not as a name of ours."""

    def arrive(maker: str, arguments: tuple[Any, ...], complaint: str) -> Any:
        import gc
        import os
        import sys
        from importlib import import_module

        module, _, name = maker.partition(":")
        is_new = module not in sys.modules
        try:
            # Spark itself asks for it, but later and in other words.
            import_module("pyarrow")
            factory = getattr(import_module(module), name)
            import_module("kleene.engine.state.memory").one_of(os.cpu_count() or 1)
        except ImportError as problem:
            said = complaint.replace("{python}", sys.executable).replace("{problem}", str(problem))
            raise RuntimeError(said) from None
        if is_new:
            # A worker collects garbage after each task: modules are none, and looking through them takes long.
            gc.freeze()
        return factory(*arguments)

    return arrive
