"""How a set of queries runs, as text: what its queries share, by what events find them, and what runs by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kleene.engine.query_sets.access_paths import RangePath
from kleene.engine.query_sets.compiling import TYPE
from kleene.engine.query_sets.shared_queries import SharedQueries
from kleene.pattern.schema import is_private
from kleene.query_set.loading import LoadedQueries

# So many templates and queries are listed.
_SHOWN = 20


def explanation(loaded: LoadedQueries) -> str:
    """All of it; no query is on its way into the set."""
    shared, queries = loaded.shared, loaded.shared.queries
    counts = np.bincount(queries.template[queries.numbers], minlength=1)
    in_engines = sum(int(counts[number]) for number in shared.row_templates if number < len(counts))
    lines = [
        f"{len(loaded):,} queries: {queries.live - in_engines:,} share nodes, {in_engines:,} the engine of their"
        f" template, {len(loaded.alone):,} run by themselves"
    ]
    if queries.live > in_engines:
        lines += _automaton(shared)
    for number in np.argsort(-counts, kind="stable")[:_SHOWN].tolist():
        if counts[number]:
            lines.append(f"template    {counts[number]:,} × {shared.text_of(number)}")
            if number in shared.row_templates:
                lines.append(f"            one engine: {shared.row_templates[number].why_no_nodes}")
    lines += [f"by itself   {name}: {each.why}" for name, each in list(loaded.alone.items())[:_SHOWN]]
    return "\n".join(lines)


def _automaton(shared: SharedQueries) -> Iterator[str]:
    """The nodes, their edges, and the rooms where instances wait."""
    levels = ", ".join(f"{number:,}" for number in shared.nodes.levels)
    yield f"nodes       {levels} after one event, after two, …"
    for columns, number in sorted(shared.nodes.access_paths.items(), key=lambda path: (-path[1], path[0])):
        yield f"edges       {number:,} by {_columns_shown(shared, columns)}"
    for path in shared.paths.chosen:
        yield f"ranges      {_path_shown(path)}"
    for columns, order in shared.nodes.shapes.room_names:
        sorted_by = f", in order of {order}" if order else ""
        yield f"waiting     by {_columns_shown(shared, columns)}{sorted_by}"


def _columns_shown(shared: SharedQueries, columns: Sequence[str]) -> str:
    names = {TYPE: shared.schema.type}
    shown = [names.get(name, "class" if is_private(name) else name) for name in columns]
    return ", ".join(shown) or "their node alone"


def _path_shown(path: RangePath) -> str:
    if path.shares is None:
        return f"by {path.columns[0]}, then {', '.join(path.columns[1:])}: no event was seen yet"
    named = [f"{name} (of {share:.0%} of events)" for name, share in zip(path.columns, path.shares, strict=True)]
    return f"by {named[0]}, then {', '.join(named[1:])}"


def description(loaded: LoadedQueries, name: str) -> str:
    """A query as one would write it by itself, and how it runs; it is not on its way into the set."""
    if name in loaded.alone:
        alone = loaded.alone[name]
        return f"{alone.query.canonical}\n-- runs by itself: {alone.why}"
    number = loaded.number(name)
    template = loaded.shared.template_of(number)
    text, params = template.template.text_of(loaded.shared.constants_of(number))
    listed = ", ".join(f":{each} = {value!r}" for each, value in params.items())
    reason = loaded.shared.why_no_nodes(template)
    engine = "" if reason is None else f"\n-- one engine runs all queries of its template: {reason}"
    return f"{text}{f' -- {listed}' if listed else ''}{engine}"
