"""Checks of a pipeline file: its keys for a stream, and the keys that must not stand with a stream or without one."""

from __future__ import annotations

from kleene.errors import BadValue, KleeneError, PipelineError
from kleene.pattern.clock import Clock, ClockKind, duration_in_steps
from kleene.pattern.schema import Schema
from kleene.spark.pipeline.model import TEXT, PipelineModel, Sink, Source, StreamEntry
from kleene.spark.pipeline.toml_positions import Path
from kleene.spark.pipeline.toml_source import TomlSource

_MILLISECOND = 1_000_000
_ADD_STREAM = "add `[stream]` with a `checkpoint` and a `delay`"


def check_stream(model: PipelineModel, sheet: TomlSource, schema: Schema) -> None:
    """Check that the parts of the file go with each other; an error is raised at the place that is wrong."""
    for number, source in enumerate(model.sources):
        wrong = _of_stream(source) if model.stream is not None else _of_bounded(source)
        if wrong is not None:
            raise _error(sheet, ("sources", number), *wrong)
    for number, sink in enumerate(model.sinks):
        wrong = _sink_of_stream(sink) if model.stream is not None else _sink_of_bounded(sink)
        if wrong is not None:
            raise _error(sheet, ("sinks", number), *wrong)
    if model.stream is not None:
        _check_entry(model.stream, sheet, schema)
        _check_rest(model, sheet)


def milliseconds(text: str) -> int:
    """A length of time by the machine's clock."""
    return int(duration_in_steps(text, Clock(ClockKind.TIMESTAMP)) / _MILLISECOND)


# Each returns the key that is wrong, a message, and a hint.
_Wrong = tuple[str, str, str | None] | None


def _of_stream(source: Source) -> _Wrong:
    if source.kind == "table":
        return "kind", "a table cannot be read as a stream", "read its files, or a topic of Kafka"
    if len(source.paths) > 1:
        return "path", "a source of a stream has one path", "a pattern (`days/*`) stands for several"
    if source.kind in TEXT and not source.declared:
        return "", f"a {source.kind} source of a stream needs a `schema`", "all columns, in the order of the files"
    return None


def _of_bounded(source: Source) -> _Wrong:
    if source.kind == "kafka":
        return "kind", "a topic of Kafka is read as a stream", _ADD_STREAM
    if source.declared and source.kind not in TEXT:
        return "schema", f"a {source.kind} source has a schema of its own", "`casts` changes a column's type"
    return None


def _sink_of_stream(sink: Sink) -> _Wrong:
    if "mode" in sink.model_fields_set:
        return "mode", "what a stream finds is added batch by batch", "leave `mode` out"
    return None


def _sink_of_bounded(sink: Sink) -> _Wrong:
    if sink.kind in ("kafka", "memory"):
        return "kind", f"a {sink.kind} sink is for streams", _ADD_STREAM
    if sink.output == "late":
        return "output", "only events of a stream can be late", _ADD_STREAM
    return None


def _check_entry(stream: StreamEntry, sheet: TomlSource, schema: Schema) -> None:
    for key in ("delay", "trigger", "idle", "ahead"):
        text = getattr(stream, key)
        if isinstance(text, str):
            try:
                # Ticks are no length of time by a clock, but a delay may be so many.
                duration_in_steps(text, Clock() if key == "delay" else Clock(ClockKind.TIMESTAMP))
            except KleeneError as error:
                hint = error.hint or "for example `10 seconds`"
                raise sheet.error(BadValue, error.message, ("stream", key), hint, value=True) from None
    if stream.trigger is not None and milliseconds(stream.trigger) < 1:
        raise _error(sheet, ("stream",), "trigger", "a batch takes at least a millisecond", None)
    if stream.drop_duplicates and schema.tie_breaker is None:
        message = "duplicates are known by their tie-breaker, and there is none"
        raise _error(sheet, ("stream",), "drop_duplicates", message, "`[schema] tie_breaker` names its column")


def _check_rest(model: PipelineModel, sheet: TomlSource) -> None:
    if model.bad_rows.policy == "fail":
        hint = "leave `policy` out; `path` says where they are written"
        raise _error(sheet, ("bad_rows",), "policy", "a stream sets bad rows aside and goes on", hint)
    if model.settings.slice_width is not None:
        raise _error(sheet, ("settings",), "slice_width", "the time of a stream is not cut into slices", None)


def _error(sheet: TomlSource, part: Path, key: str, message: str, hint: str | None) -> PipelineError:
    path = (*part, key) if key else part
    return sheet.error(BadValue, message, path, hint, value=bool(key))
