"""Queries of the stream algebra that run as one: templates are compiled once, queries are rows of constants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from kleene.algebra.cutting import cut
from kleene.algebra.eql_query import BoundEqlQuery
from kleene.algebra.nodes import sources
from kleene.algebra.query import BoundStreamQuery
from kleene.codegen.value_kinds import FOREIGN
from kleene.engine.engine import check_bounded
from kleene.engine.intake.columns import column_layout
from kleene.engine.intake.strings import StringPool
from kleene.engine.output.identity import Hashes
from kleene.engine.output.returned import check_returns
from kleene.engine.query_sets.access_paths import AccessPaths, EventSample
from kleene.engine.query_sets.compiling import CompiledNode, Parameters, SharedCompiler
from kleene.engine.query_sets.graph import QueryNodes, ShapedTemplate, moved_nodes
from kleene.engine.query_sets.intake import SharedIntake, compared_by_class
from kleene.engine.query_sets.line_results import line_lists, line_rows
from kleene.engine.query_sets.results import SharedFound, match_rows, query_lists
from kleene.engine.query_sets.row_results import row_lists, row_rows
from kleene.engine.query_sets.run import SharedRun
from kleene.engine.query_sets.stored import ALWAYS_THERE, StoredQueries
from kleene.engine.query_sets.template_rows import QueryFacts, RowMatches, RowQueries
from kleene.engine.readiness import HasAlternatives, uncompiled_if_few
from kleene.engine.state.memory import give_back
from kleene.engine.streams.cells import CellValues
from kleene.engine.streams.compiling import EventLayout
from kleene.engine.streams.engine import check_bounded as check_bounded_stream
from kleene.engine.streams.values import ValuePool
from kleene.frames.identity import bytes_hash
from kleene.kernels.expression import Ints
from kleene.kernels.shared_nodes import Numbers
from kleene.lang.format import format_declaration
from kleene.lang.literals import Plain
from kleene.optimize.streams.automaton import plan_stream
from kleene.optimize.streams.lines import plan_line, result_identity, why_no_line
from kleene.optimize.streams.sharing import SharedPlan, share
from kleene.optimize.template_rows import template_rows
from kleene.pattern.query import BoundQuery
from kleene.pattern.schema import Schema
from kleene.pattern.types import ValueType
from kleene.plan.program import NotCompilable
from kleene.plan.settings import Settings
from kleene.queries.templates import Template

# So many queries are put in by uncompiled kernels.
FEW_QUERIES = 1 << 9
# More are put in by parts, so that what is computed for them meanwhile takes little memory, and then put in order.
_AT_ONCE = 1 << 14


@dataclass(frozen=True, eq=False)
class SharedTemplate:
    """A template that is ready to take in queries.

    classes   what its queries' digests say of the classes of the schema
    runs_as   the nodes that its queries share, or how one engine runs them all
    """

    number: int
    template: Template
    bound: BoundStreamQuery | BoundQuery
    classes: bytes
    runs_as: SharedNodes | RowQueries


@dataclass(eq=False)
class SharedNodes:
    """The nodes of a template; they have shapes from its first queries on, whose constants tell how to search edges."""

    plan: SharedPlan
    nodes: list[CompiledNode]
    shaped: ShapedTemplate | None = None


Found = SharedFound | RowMatches


class SharedQueries:
    """A set of standing queries over events with certain columns."""

    def __init__(
        self,
        columns: pa.Schema,
        schema: Schema,
        settings: Settings | None = None,
        *,
        merges: bool = True,
        rooms: bool = True,
        deadlines: bool = True,
    ) -> None:
        """A set without queries.

        schema   what these columns mean
        settings   of the engines of templates that are no lines
        merges   whether equal prefixes of queries become one
        rooms    whether instances wait by the values that their filters test
        deadlines   whether instances leave when they are too old to be served; otherwise only an event ends them
        """
        self.columns, self.schema, self.settings = columns, schema, settings or Settings()
        self._merges, self._rooms, self._deadlines = merges, rooms, deadlines
        layout = column_layout(columns, columns.names)
        first = EventLayout(layout)
        others = [name for name, column in layout.items() if column.type in FOREIGN]
        places = {name: first.end.place + 1 + at for at, name in enumerate(others)}
        self.layout = EventLayout(layout, places, numbered=True)
        self.values = CellValues(StringPool(), ValuePool())
        self.queries = StoredQueries()
        self.nodes = QueryNodes(self.values.strings)
        self.paths = AccessPaths()
        # Templates of which it is not known whether what waits for them is bounded.
        self._unchecked: set[int] = set()
        # How many queries were removed.
        self.removals = 0
        self._templates: dict[int, SharedTemplate] = {}
        self._numbers: dict[Template, SharedTemplate] = {}

    # Templates

    def knows(self, template: Template) -> bool:
        """Whether a template is compiled."""
        return template in self._numbers

    def template(self, template: Template) -> SharedTemplate:
        """A template, compiled when it is first seen; `NotCompilable` says why its queries cannot share."""
        known = self._numbers.get(template)
        if known is not None:
            return known
        bound = template.query.bind(self.schema)
        if isinstance(bound, BoundEqlQuery):
            raise NotCompilable("it is in EQL")
        rows = self._rows_of(bound, template) if isinstance(bound, BoundQuery) else None
        runs_as: SharedNodes | RowQueries
        if rows is not None:
            runs_as = rows
        else:
            shared = self._shared_plan(bound)
            compiler = SharedCompiler(shared, self.columns, self.layout, rooms=self._rooms, deadlines=self._deadlines)
            runs_as = SharedNodes(shared, compiler.nodes())
        number = self.queries.new_template(len(template.parameters))
        compiled = SharedTemplate(number, template, bound, self._classes(bound), runs_as)
        self._templates[number] = self._numbers[template] = compiled
        self._unchecked.add(number)
        return compiled

    def _rows_of(self, query: BoundQuery, template: Template) -> RowQueries | None:
        """How one engine runs all queries of a template; None: they are lines, which have nodes."""
        reason = why_no_line(query)
        if reason is None:
            return None
        rows = template_rows(query, dict(template.parameters))
        return RowQueries(query, rows, reason, self.columns, self.layout, self.values)

    def _shared_plan(self, bound: BoundStreamQuery | BoundQuery) -> SharedPlan:
        types = {name: column.type for name, column in self.layout.columns.items()}
        if isinstance(bound, BoundQuery):
            check_returns(bound, self.columns)
            identity = result_identity(bound, self.columns.names)
            return share(plan_line(bound), types, rooms=self._rooms, results=identity)
        if bound.publish is not None:
            raise NotCompilable("other queries may read the stream that it makes")
        if len(cut(bound)) > 1:
            raise NotCompilable("it is not linear-plus: a part of it is a stream of its own")
        return share(plan_stream(bound), types, rooms=self._rooms)

    def _classes(self, bound: BoundStreamQuery | BoundQuery) -> bytes:
        """What the digests of its queries say of the classes of the schema."""
        if isinstance(bound, BoundQuery):
            named = {each.name for component in bound.components for each in component.classes}
        else:
            named = {source.event_class.name for source in sources(bound.root)}
        declared = [self.schema.classes[name] for name in sorted(named) if name in self.schema.classes]
        return b"".join(b"\0" + format_declaration(each).encode() for each in declared)

    # Queries

    def add(
        self,
        template: SharedTemplate,
        values: Mapping[str, np.ndarray],
        numbers: Ints,
        since: int | Ints = ALWAYS_THERE,
    ) -> None:
        """Put in queries of a template, under numbers whose names are reserved.

        values   by parameter, [query]: integers, reals, booleans, or codes of strings
        since    the moment from which on they live
        """
        order = np.arange(len(numbers))
        if len(numbers) > FEW_QUERIES and isinstance(template.runs_as, SharedNodes):
            # Nodes of the same values stand side by side, as edges of one bucket do.
            first = template.runs_as.nodes[0].entering[0]
            tested, _ = first.tested(_parameters(template, values, slice(None)), self.values.strings)
            order = np.lexsort(tested.T[::-1]) if tested.shape[1] else order
        for begin in range(0, len(numbers), _AT_ONCE):
            part = order[begin : begin + _AT_ONCE]
            moments = since[part] if isinstance(since, np.ndarray) else since
            self._add(template, _parameters(template, values, part), numbers[part], moments)
        if len(numbers) >= _AT_ONCE:
            self.nodes.freeze()
            self.queries.trim()
            give_back()
        else:
            with uncompiled_if_few(self.queries.size, FEW_QUERIES, SharedPlan):
                self.nodes.freeze_if_many()

    def _add(self, template: SharedTemplate, given: Parameters, numbers: Ints, since: int | Ints) -> None:
        ended = np.zeros(len(numbers), np.int32)
        with uncompiled_if_few(len(numbers), FEW_QUERIES, SharedPlan):
            if isinstance(template.runs_as, RowQueries):
                template.runs_as.add(numbers, given)
            else:
                ended = self.nodes.add(self._shaped(template.runs_as, given), given, numbers, merges=self._merges)
        listed = [given.cells(name) for name, _ in template.template.parameters]
        constants = np.stack(listed, axis=1) if listed else np.zeros((len(numbers), 0), np.int64)
        self.queries.put(numbers, template.number, constants, ended, since)

    def _shaped(self, template: SharedNodes, given: Parameters) -> ShapedTemplate:
        """The nodes of a template with their shapes; its first queries are `given`."""
        if template.shaped is None:
            template.shaped = self.nodes.shaped(self.paths.ordered(template.nodes, given, self.values.strings))
        return template.shaped

    def see(self, events: pa.Table, run: SharedRun | None) -> None:
        """Take a sample of the first events: by it paths are chosen, anew for earlier queries where that pays."""
        if self.paths.sample is not None or not events.num_rows:
            return
        paths = AccessPaths(EventSample.of(events, self.layout.columns))
        for number, template in self._templates.items():
            if isinstance(template.runs_as, SharedNodes) and template.runs_as.shaped is not None:
                mine = np.flatnonzero(self.queries.template[: self.queries.size] == number)
                given = Parameters(_values(template, self.queries.rows_of(number, mine)), len(mine))
                paths.ordered(template.runs_as.nodes, given, self.values.strings)
        kept = paths.in_order_of(self.paths)
        self.paths = paths if kept is None else kept
        if kept is None:
            for each in self._node_templates:
                each.shaped = None
            self.compact(run)

    def remove(self, number: int) -> None:
        runs_as = self.template_of(number).runs_as
        if isinstance(runs_as, RowQueries):
            runs_as.remove(number)
        else:
            self.nodes.remove(number, int(self.queries.node[number]))
        self.queries.remove(number)
        self.removals += 1

    def compact(self, run: SharedRun | None) -> None:
        """Give back the memory of queries that are gone; a run goes on with those that are left."""
        old, queries = self.nodes, self.queries
        self.nodes, self.queries = QueryNodes(self.values.strings, old.shapes), StoredQueries()
        for each in self._templates.values():
            self.queries.new_template(len(each.template.parameters))
        ended, renewed = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
        live = queries.numbers[np.argsort(queries.template[queries.numbers], kind="stable")]
        of_templates, firsts = np.unique(queries.template[live], return_index=True)
        for number, mine in zip(of_templates.tolist(), np.split(live, firsts[1:]), strict=bool(len(live))):
            template, rows = self._templates[number], queries.rows_of(number, mine)
            numbers, _ = self.queries.reserve(queries.names(mine))
            if isinstance(template.runs_as, RowQueries):
                values = _values(template, rows)
                template.runs_as.compact(mine, numbers, partial(_parameters, template, values))
                self.queries.put(numbers, number, rows, np.zeros(len(mine), np.int32), queries.since[mine])
                continue
            self.add(template, _values(template, rows), numbers, queries.since[mine])
            ended.append(queries.node[mine])
            renewed.append(self.queries.node[numbers])
        give_back()
        if run is not None:
            run.move(self.nodes, moved_nodes(old, self.nodes, np.concatenate(ended), np.concatenate(renewed)))

    def template_of(self, number: int) -> SharedTemplate:
        return self._templates[int(self.queries.template[number])]

    def text_of(self, template: int) -> str:
        """A template on one line."""
        return " ".join(self._templates[template].template.query.canonical.split("\n"))

    def why_no_nodes(self, template: SharedTemplate) -> str | None:
        """Why an engine runs the queries of a template; None: they have nodes."""
        return template.runs_as.why_no_nodes if isinstance(template.runs_as, RowQueries) else None

    def constants_of(self, number: int) -> list[Plain]:
        """The constants of a query."""
        template = self.template_of(number).template
        return self._plain(template, self.queries.constants_of(number))

    def _plain(self, template: Template, cells: Ints) -> list[Plain]:
        constants: list[Plain] = []
        for (_, kind), cell in zip(template.parameters, cells, strict=True):
            if kind is ValueType.STRING:
                constants.append(self.values.strings.text(int(cell)))
            elif kind is ValueType.FLOAT:
                constants.append(float(cell.view(np.float64)))
            else:
                constants.append(bool(cell) if kind is ValueType.BOOL else int(cell))
        return constants

    def facts(self, template: int) -> QueryFacts:
        """What is asked of queries of a template by their numbers."""
        return QueryFacts(lambda numbers: self.queries.rows_of(template, numbers), self.digests)

    def digests(self, numbers: Numbers | Ints) -> Hashes:
        """The hashes that identify queries in match ids; each is computed once."""
        queries = self.queries
        distinct = np.unique(numbers)
        for number in distinct[queries.digest[distinct] == 0].tolist():
            template = self.template_of(number)
            digest = template.template.digest_of(self.constants_of(number), template.classes)
            queries.digest[number] = bytes_hash(digest)
        return queries.digest[numbers]

    def table_of(self, found: SharedFound | RowMatches, *, lists: bool) -> pa.Table:
        """Results as a table: a row for each query and match, or a row for each match with the list of its queries."""
        if isinstance(found, RowMatches):
            return row_lists(found, self.queries) if lists else row_rows(found, self.queries)
        values = self.values
        if isinstance(found.query, BoundQuery):
            if lists:
                return line_lists(found, values.strings, self.queries)
            return line_rows(found, values.strings, self.queries, self.digests)
        if lists:
            return query_lists(found, self.columns, values, self.queries)
        return match_rows(found, self.columns, values, self.queries, self.digests)

    # Events

    def check_bounded(self) -> None:
        """Refuse queries for which instances could wait for ever on a stream."""
        for number in sorted(self._unchecked):
            template = self._templates[number]
            if isinstance(template.runs_as, RowQueries):
                template.runs_as.check_bounded()
            elif isinstance(template.bound, BoundQuery):
                check_bounded(template.bound, has_negated_end=False)
            else:
                check_bounded_stream(template.bound, template.runs_as.plan.whole)
            self._unchecked.discard(number)

    @property
    def plans(self) -> list[HasAlternatives]:
        """How queries run: of those that share nodes one plan is enough to tell which kernels are needed."""
        shared: list[HasAlternatives] = [*[each.plan for each in self._node_templates][:1]]
        for each in self.row_templates.values():
            shared += [*each.index.plans[:1], each.plan]
        return shared

    @property
    def executors(self) -> set[type]:
        """The kinds of plans whose kernels are needed."""
        return {SharedPlan, *(type(each) for plan in self.plans for each in plan.alternatives)}

    @property
    def _node_templates(self) -> Iterator[SharedNodes]:
        return (each.runs_as for each in self._templates.values() if isinstance(each.runs_as, SharedNodes))

    @property
    def row_templates(self) -> dict[int, RowQueries]:
        """The templates that are no lines, by number."""
        listed = ((number, each.runs_as) for number, each in self._templates.items())
        return {number: runs_as for number, runs_as in listed if isinstance(runs_as, RowQueries)}

    @property
    def intake(self) -> SharedIntake:
        atoms = tuple(self.nodes.shapes.columns)
        classes = {formula.source for each in self._node_templates for formula in each.plan.plan.formulas}
        return SharedIntake(self.schema, self.layout, atoms, compared_by_class(classes, atoms))

    @property
    def nbytes(self) -> int:
        """The bytes of queries, nodes and edges, without those of events."""
        rows = sum(each.index.nbytes for each in self.row_templates.values())
        return self.queries.nbytes + self.nodes.nbytes + rows


def _values(template: SharedTemplate, rows: Ints) -> dict[str, np.ndarray]:
    """By parameter, [query]: constants of stored queries, [query, parameter]."""
    return {
        name: rows[:, place].copy().view(np.float64 if kind is ValueType.FLOAT else np.int64)
        for place, (name, kind) in enumerate(template.template.parameters)
    }


def _parameters(template: SharedTemplate, values: Mapping[str, np.ndarray], rows: slice | Ints) -> Parameters:
    """The constants of some queries."""
    given = {name: _as_cells(values[name][rows]) for name, _ in template.template.parameters}
    return Parameters(given, len(rows) if not isinstance(rows, slice) else len(next(iter(values.values()), ())))


def _as_cells(values: np.ndarray) -> np.ndarray:
    """Booleans and narrow numbers as 64 bits."""
    return np.ascontiguousarray(values, np.float64 if values.dtype.kind == "f" else np.int64)
