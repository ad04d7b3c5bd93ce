"""Kernels that tasks will need, compiled while Spark is still at its own work.

Workers of a local session share their kernels with the driver. Those of a cluster have their own, on each machine:
`kleene warm` there, or `kleene archive`, compiles them beforehand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kleene.engine.readiness import before_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def compile_beside(session: SparkSession) -> None:
    """Begin to compile, where that serves the session's workers and has not been done."""
    if _is_local(session):
        before_tasks()


def _is_local(session: SparkSession) -> bool:
    try:
        return str(session.conf.get("spark.master")).startswith("local")
    except Exception:  # a Connect server need not say
        return False
