"""Kafka in pipeline files: its brokers, and the connector that Spark needs for it."""

from __future__ import annotations

from collections.abc import Mapping

from kleene.spark.connectors import kafka_conf
from kleene.spark.pipeline.model import PipelineModel, Sink, Source

_JARS = "spark.jars"


def brokers(part: Source | Sink) -> str:
    return part.bootstrap if isinstance(part.bootstrap, str) else ",".join(part.bootstrap or ())


def with_connector(conf: Mapping[str, str], model: PipelineModel) -> dict[str, str]:
    """Settings with the jars of Kafka's connector, where the file needs these and does not name them itself."""
    kinds = {source.kind for source in model.sources} | {sink.kind for sink in model.sinks}
    named = any("kafka" in conf.get(name, "") for name in (_JARS, "spark.jars.packages"))
    if "kafka" not in kinds or named:
        return dict(conf)
    jars = [jars for jars in (conf.get(_JARS), kafka_conf()[_JARS]) if jars]
    return {**conf, _JARS: ",".join(jars)}
