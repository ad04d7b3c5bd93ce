"""Several queries that run together, explained: the streams between them, then each of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from kleene.explanation import Explanation, explain_query
from kleene.pattern.explaining import aligned
from kleene.pattern.schema import Schema
from kleene.plan.mermaid import arrow, label
from kleene.plan.settings import Settings
from kleene.queries.any_query import AnyBoundQuery, AnyQuery
from kleene.queries.feeding import declared_together, in_dependency_order, types_read

if TYPE_CHECKING:
    import pyarrow as pa


def explain_queries(
    queries: Sequence[AnyQuery], *, schema: Schema | None = None, events: Any = None, settings: Settings | None = None
) -> Explanation:
    """Explain queries that run together; a reader knows the attributes of the streams that others make."""
    declared = declared_together(schema or Schema(), queries)
    known, columns = declared, None
    if events is not None:
        columns, known = _columns(queries, events, declared)
    bound: dict[int, AnyBoundQuery] = {}
    texts: dict[int, str] = {}
    for number, query in in_dependency_order(queries, declared):
        stream_types = {name: kinds for each in bound.values() for name, kinds in each.made_types.items()}
        own = known.reading(types_read(query, known)).adding_types(stream_types)
        bound[number] = query.bind(own, checking=True)
        texts[number] = explain_query(query, schema=own, settings=settings).text
    listed = [bound[number] for number in range(len(queries))]
    routes = _routes(listed, columns, events, settings or Settings())
    rows = list(stream_rows(listed))
    lines = ["streams", *aligned(rows or [("none", "no query reads what another makes")], indent="  ")]
    for number, text in sorted(texts.items()):
        lines += ["", text, *([f"  on Spark  {routes[number]}"] if routes else [])]
    return Explanation("\n".join(lines), _mermaid(listed))


def stream_rows(queries: Sequence[AnyBoundQuery]) -> Iterator[tuple[str, str]]:
    """Every stream that a query makes, with who makes it and who reads it."""
    for stream in dict.fromkeys(name for query in queries for name in query.makes):
        makers = [f"`{query.name}`" for query in queries if stream in query.makes]
        readers = [f"`{query.name}`" for query in queries if stream in query.types]
        yield stream, f"made by {', '.join(makers)}; read by {', '.join(readers) or 'none of these'}"


def _columns(queries: Sequence[AnyQuery], events: Any, declared: Schema) -> tuple[pa.Schema, Schema]:
    """The columns of events, and what they mean."""
    from kleene.frames.arrow import schema_on
    from kleene.frames.kinds import on_spark
    from kleene.frames.streams import reads, to_table

    wanted = reads(queries, declared)
    if on_spark(events):
        from kleene.spark.streams import one_input

        numbered, known = one_input(events, declared, wanted)
        return numbered.columns, schema_on(numbered.columns, known)
    table, known = to_table(events, declared, wanted)
    return table.schema, schema_on(table.schema, known)


def _routes(queries: Sequence[AnyBoundQuery], columns: pa.Schema | None, events: Any, settings: Settings) -> list[str]:
    """How Spark would divide the events of each query, where it is to run there."""
    from kleene.frames.kinds import on_spark

    if columns is None or not on_spark(events):
        return []
    from kleene.spark.routing import routes_of

    return [route.describe() for route in routes_of(queries, columns, settings.budget.policy)]


def _mermaid(queries: Sequence[AnyBoundQuery]) -> str:
    """Who reads whom, as a flowchart: queries are boxes, streams the arrows between them."""
    lines = ["flowchart LR"]
    lines += [f"    q{number}[{label([query.name])}]" for number, query in enumerate(queries)]
    for number, query in enumerate(queries):
        for other, reader in enumerate(queries):
            lines += [f"    {arrow(f'q{number}', f'q{other}', [name])}" for name in query.makes if name in reader.types]
    return "\n".join(lines) + "\n"
