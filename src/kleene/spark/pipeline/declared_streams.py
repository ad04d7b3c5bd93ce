"""Sources and sinks that queries declare (NEXT §3.5), and those of a pipeline file: one name, one of each.

NEXT's sources and sinks register themselves under a name, with a schema (§5). In a pipeline they are `[[sources]]` and
`[[sinks]]`: a query says what it expects of them, and here the two are compared, before Spark starts where the file
tells the columns, else when the sources have been opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from kleene.errors import PipelineError, UnfitSource, UnknownName, did_you_mean
from kleene.lang import tree
from kleene.pattern.schema import declared_attributes
from kleene.pattern.sinks import fits
from kleene.pattern.types import TYPE_NAMES, ValueType
from kleene.queries.any_query import AnyQuery
from kleene.spark.pipeline.model import PipelineModel, Sink, Source

E = TypeVar("E", bound=PipelineError)

# Of the types that a pipeline file names, those that a query does not, or means otherwise: Spark's own have a zone.
_KINDS = {
    "byte": ValueType.INT,
    "short": ValueType.INT,
    "binary": ValueType.OTHER,
    "timestamp": ValueType.ZONED,
    "timestamp_ntz": ValueType.TIMESTAMP,
}
_OF_MESSAGES = {
    "topic": ValueType.STRING,
    "partition": ValueType.INT,
    "offset": ValueType.INT,
    "timestamp": ValueType.ZONED,
}


def takes(sink: Sink, query: AnyQuery) -> bool:
    """Whether a result of a query goes to a sink: it declares the sink, or the sink names it, or takes all."""
    if sink.name is not None and any(sink.name == declared.name for declared in _sinks(query)):
        return True
    return sink.query == query.name if sink.query is not None else sink.name is None


def check_declared(model: PipelineModel, queries: Sequence[AnyQuery], type_column: str) -> None:
    """Refuse declarations that nothing in the file answers to, as far as the file tells; an error is of the query."""
    sources = {source.name: source for source in model.sources}
    sinks = [sink.name for sink in model.sinks if sink.name is not None]
    for query in queries:
        for declared in _sources(query):
            source = sources.get(declared.name)
            if source is None:
                raise _unknown(query, declared, "source", list(sources))
            columns, is_complete = _known_columns(source, model)
            _check(query, declared, columns, type_column, is_complete=is_complete)
        for sink in _sinks(query):
            if sink.name not in sinks:
                raise _unknown(query, sink, "sink", sinks)


def check_opened(columns: Mapping[str, Mapping[str, ValueType]], queries: Sequence[AnyQuery], type_column: str) -> None:
    """Refuse declarations that do not fit the sources; an error is of the query.

    columns   those of each source, under our names
    """
    for query in queries:
        for declared in _sources(query):
            _check(query, declared, columns[declared.name], type_column, is_complete=True)


def _sources(query: AnyQuery) -> Iterator[tree.SourceDeclaration]:
    return (each for each in query.tree.declarations if isinstance(each, tree.SourceDeclaration))


def _sinks(query: AnyQuery) -> Iterator[tree.SinkDeclaration]:
    return (each for each in query.tree.declarations if isinstance(each, tree.SinkDeclaration))


def _unknown(
    query: AnyQuery, declared: tree.SourceDeclaration | tree.SinkDeclaration, what: str, known: Sequence[str]
) -> UnknownName:
    near = did_you_mean(declared.name, known) or ""
    if not near.startswith("did"):
        names = ", ".join(f"`{name}`" for name in known)
        near = f'`[[{what}s]]` with `name = "{declared.name}"` is missing'
        near += f"; there {'is' if len(known) == 1 else 'are'} {names}" if known else ""
    message = f"the pipeline has no {what} `{declared.name}`"
    return _of_query(UnknownName(message, declared.span, near), query)


def _check(
    query: AnyQuery,
    declared: tree.SourceDeclaration,
    columns: Mapping[str, ValueType],
    type_column: str,
    *,
    is_complete: bool,
) -> None:
    """Compare the attributes of a source with its columns; unless all are known, a missing one may be there."""
    for name, kind in declared_attributes(declared).items():
        if name == type_column and name not in columns:
            continue  # its name is the type of its events
        if name not in columns and is_complete:
            message = f"source `{declared.name}` has no column `{name}`"
            raise _of_query(UnfitSource(message, declared.span, did_you_mean(name, columns)), query)
        if name in columns and not fits(kind, columns[name]):
            message = f"`{name}` of source `{declared.name}` holds {columns[name].value}, not {kind.value}"
            hint = "declare what it holds, or let `casts` of the source change it"
            raise _of_query(UnfitSource(message, declared.span, hint), query)


def _of_query(error: E, query: AnyQuery) -> E:
    error.locate(query.text, query.origin)
    return error


def _known_columns(source: Source, model: PipelineModel) -> tuple[dict[str, ValueType], bool]:
    """The columns of a source that the file itself tells, under our names, and whether these are all."""
    columns = {name: _kind(written) for name, written in source.declared.items()}
    if source.kind == "kafka":
        columns |= {name: kind for name, kind in _OF_MESSAGES.items() if name not in columns}
    ours_of = {theirs: ours for ours, theirs in source.columns.items()}
    renamed = {ours_of.get(name, name): kind for name, kind in columns.items()}
    casts = {name: _kind(written) for name, written in source.casts.items()}
    # The header of a CSV file may name more.
    headed = source.kind == "csv" and model.stream is None and str(source.options.get("header", True)).lower() == "true"
    return {**renamed, **casts}, bool(source.declared) and not headed


def _kind(written: str) -> ValueType:
    """What a column holds whose type the file names."""
    word = written.casefold().strip()
    if word.startswith("decimal"):
        return ValueType.DECIMAL
    return _KINDS.get(word) or TYPE_NAMES[word]
