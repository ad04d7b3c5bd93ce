"""A pipeline file, read and checked before Spark starts: everything wrong with it is one error with its line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path as File
from typing import Any, TypeVar

from pydantic import ValidationError

from kleene.errors import (
    BadValue,
    KleeneError,
    MissingVariable,
    PipelineError,
    QueryError,
    UnknownKey,
    UnknownName,
    UnknownParameter,
    UnreadableFile,
    did_you_mean,
)
from kleene.frames.text_files import neighbour, read_text
from kleene.optimize.rules import ALL_RULES
from kleene.pattern.schema import Schema
from kleene.pattern.secrets import is_secret
from kleene.plan.settings import Exchange, Settings, from_plain
from kleene.queries.any_query import AnyQuery, read_query
from kleene.queries.feeding import declared_together
from kleene.queries.parameters import parameters_of
from kleene.spark.pipeline.declared_streams import check_declared, takes
from kleene.spark.pipeline.model import OF_RUNNING, PARTS, PipelineModel, keys_of
from kleene.spark.pipeline.stream_checks import check_stream
from kleene.spark.pipeline.toml_positions import Path
from kleene.spark.pipeline.toml_source import TomlSource
from kleene.spark.pipeline.values import from_environment, scrubbed, secrets_in

# What pydantic calls a wrong type, in our words.
_WANTED = {
    "string": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "dict": "a table",
    "model": "a table",
    "tuple": "a list",
    "list": "a list",
}
_TOML_TYPES = {str: "a text", bool: "a boolean", int: "a number", float: "a number", dict: "a table", list: "a list"}

E = TypeVar("E", bound=KleeneError)


@dataclass(frozen=True)
class Pipeline:
    """A pipeline file that is valid, as far as that can be known without its data."""

    model: PipelineModel
    sheet: TomlSource
    # Relative paths start here.
    folder: File
    queries: tuple[AnyQuery, ...]
    schema: Schema
    settings: Settings

    @property
    def secrets(self) -> list[str]:
        options = [source.options for source in self.model.sources] + [sink.options for sink in self.model.sinks]
        params = [query.params for query in self.model.queries]
        return secrets_in([*options, *params, self.model.spark.conf])

    def located(self, error: E) -> E:
        """An error shows its place in the query as it was written, which may be in this file."""
        for number, query in enumerate(self.queries):
            if error.text == query.text and error.origin == query.origin:
                self.sheet.point_into(error, ("queries", number, "text"), query.text)
                break
        return error


def read_pipeline(path: str | File) -> Pipeline:
    """Read a pipeline file; the first thing that is wrong in it is raised."""
    file = File(path)
    sheet = TomlSource.read(file)

    def missing(name: str, at: Path) -> KleeneError:
        return sheet.error(MissingVariable, f"there is no environment variable `{name}`", at, value=True)

    content = from_environment(dict(sheet.content), missing)
    try:
        model = PipelineModel.model_validate(content)
    except ValidationError as problem:
        raise _first(problem, sheet) from None
    folder = file.resolve().parent
    _check_names(model, sheet)
    settings = _settings(model, sheet)
    queries = _queries(model, sheet, file.parent)
    schema = _parsed(model, sheet, queries)
    pipeline = Pipeline(model, sheet, folder, queries, schema, settings)
    _check_params(pipeline)
    _check_declared(pipeline)
    _check_sinks(pipeline)
    check_stream(model, sheet, schema)
    # A secret may stand in another place, too, such as an address.
    return replace(pipeline, sheet=replace(sheet, text=scrubbed(sheet.text, pipeline.secrets)))


# Errors of pydantic --------------------------------------------------------------------------------------------------


def _first(problem: ValidationError, sheet: TomlSource) -> PipelineError:
    # What is missing comes last: a key that is misspelled is missing under its right name, too.
    errors = sorted(problem.errors(include_url=False), key=lambda error: error["type"] == "missing")
    candidates = [_said(error, sheet) for error in errors]
    missing = sum(error["type"] == "missing" for error in errors)
    return min(candidates[: len(candidates) - missing] or candidates, key=lambda error: error.line or 0)


def _said(error: Any, sheet: TomlSource) -> PipelineError:
    """One of pydantic's errors in our words."""
    path, kind = _path(error["loc"], sheet), error["type"]
    where, key = _where(path), str(path[-1]) if path else ""
    written = error.get("input")
    if kind == "extra_forbidden":
        known = keys_of(PARTS[str(path[0])]) if len(path) > 1 and path[0] in PARTS else keys_of(PipelineModel)
        return sheet.error(UnknownKey, f"{where} has no key `{key}`", path, did_you_mean(key, known))
    if kind == "missing":
        if len(path) == 1:
            return BadValue(f"`{sheet.origin}` has no {key}", hint=f"add `[[{key}]]`")
        return sheet.error(BadValue, f"{where} needs `{key}`", path)
    if kind == "kleene":
        said = error["ctx"]
        path += tuple(said["key"].split(".", 1)) if said["key"] else ()
        return sheet.error(BadValue, said["message"], path, said["hint"])
    if kind == "literal_error":
        # The words are quoted: 'parquet', 'csv' or 'json'
        words = [word for word in error["ctx"]["expected"].split("'") if word.isidentifier() and word != "or"]
        return sheet.error(
            BadValue, f"`{written}` is no {key} of {where}", path, did_you_mean(str(written), words), value=True
        )
    if kind == "string_pattern_mismatch":
        return sheet.error(BadValue, f"`{written}` cannot be a {key}", path, _NAMES_HINT, value=True)
    if kind.startswith("greater_than"):
        least = error["ctx"].get("ge", 0)
        return sheet.error(BadValue, f"`{key}` is at least {least}", path, value=True)
    if kind.startswith("less_than"):
        return sheet.error(BadValue, f"`{key}` is at most {error['ctx']['le']}", path, value=True)
    wanted = next((words for name, words in _WANTED.items() if kind.startswith(name)), "something else")
    actual = next((words for python, words in _TOML_TYPES.items() if type(written) is python), "of another type")
    shown = "" if is_secret(key) or not isinstance(written, str) else f" `{written}`"
    return sheet.error(BadValue, f"`{key}` of {where} must be {wanted}, not {actual}{shown}", path, value=True)


_NAMES_HINT = "letters, digits and `_`, and a letter first; parts of a table's name are joined by dots"


def _path(loc: tuple[str | int, ...], sheet: TomlSource) -> Path:
    """Pydantic also names the branch of a union that it tried, which is no key."""
    path: Path = ()
    for part in loc:
        if (*path, part) not in sheet.places and part in ("str", "bool", "int", "float", "tuple[str, ...]"):
            break
        path += (part,)
    return path


def _where(path: Path) -> str:
    """`[[sources]]`, `[budget]`: how the part of a key is written."""
    if len(path) < 2:
        return "the pipeline"
    return f"[[{path[0]}]]" if isinstance(path[1], int) else f"[{path[0]}]"


# What only the whole file shows --------------------------------------------------------------------------------------


def _check_names(model: PipelineModel, sheet: TomlSource) -> None:
    for part in ("sources", "sinks"):
        seen: set[str] = set()
        for place, named in enumerate(getattr(model, part)):
            if named.name in seen:
                raise sheet.error(BadValue, f"two {part} are called `{named.name}`", (part, place, "name"), value=True)
            seen |= set() if named.name is None else {named.name}


def _settings(model: PipelineModel, sheet: TomlSource) -> Settings:
    for place, rule in enumerate(model.settings.without):
        if rule not in ALL_RULES:
            path = ("settings", "without", place)
            raise sheet.error(
                UnknownName, f"there is no rule `{rule}`", path, did_you_mean(rule, ALL_RULES), value=True
            )
    plain = model.settings.model_dump(exclude_none=True)
    division = {field.name: plain.pop(field.name) for field in fields(Exchange) if field.name in plain}
    stream = {} if model.stream is None else model.stream.model_dump(exclude_none=True, exclude=set(OF_RUNNING))
    budget = model.budget.model_dump(exclude_none=True)
    return from_plain({**plain, "budget": budget, "exchange": division, "stream": stream})


def _schema(model: PipelineModel, sheet: TomlSource) -> Schema:
    mapping = model.mapping
    plain = mapping.model_dump(exclude={"types", "classes", "tick"})
    # Each on its own first: their errors know no place in the file.
    alone: list[tuple[Path, dict[str, Any]]] = [
        *(
            (("types", name, column), {"types": {name: {column: kind}}})
            for name, columns in mapping.types.items()
            for column, kind in columns.items()
        ),
        *((("classes", name), {"classes": {name: text}}) for name, text in mapping.classes.items()),
        (("tick",), {"tick": mapping.tick}),
    ]
    for path, part in alone:
        try:
            Schema(**part)
        except KleeneError as error:
            raise sheet.error(BadValue, error.message, ("schema", *path), error.hint, value=True) from None
    return Schema(**plain, types=mapping.types, classes=mapping.classes, tick=mapping.tick)


def _queries(model: PipelineModel, sheet: TomlSource, folder: File) -> tuple[AnyQuery, ...]:
    queries: list[AnyQuery] = []
    for place, entry in enumerate(model.queries):
        name = entry.name or File(entry.file or "").stem
        if any(query.name == name for query in queries):
            path = ("queries", place, "name" if entry.name else "file")
            raise sheet.error(BadValue, f"two queries are called `{name}`", path, "give one a `name`", value=True)
        if entry.file is None:
            text, origin = entry.text or "", f"{sheet.origin}: query `{name}`"
        else:
            text, origin = _query_file(sheet, place, folder / entry.file), str(folder / entry.file)
        queries.append(read_query(text, name, entry.params, origin=origin))
    return tuple(queries)


def _query_file(sheet: TomlSource, place: int, file: File) -> str:
    if not file.exists():
        message = f"there is no query file `{file}`"
        raise sheet.error(UnreadableFile, message, ("queries", place, "file"), neighbour(file), value=True)
    return read_text(file)


def _parsed(model: PipelineModel, sheet: TomlSource, queries: tuple[AnyQuery, ...]) -> Schema:
    """The schema with what the queries declare; a query that cannot be parsed is wrong before Spark starts."""
    schema = _schema(model, sheet)
    try:
        return declared_together(schema, queries)
    except QueryError as error:
        for number, query in enumerate(queries):
            if error.origin == query.origin:
                sheet.point_into(error, ("queries", number, "text"), query.text)
        raise


def _check_params(pipeline: Pipeline) -> None:
    """Every value is for a parameter that its query has."""
    for place, query in enumerate(pipeline.queries):
        known = parameters_of([query], pipeline.schema)
        for name in query.params:
            if name not in known:
                message, hint = f"query `{query.name}` has no parameter `:{name}`", did_you_mean(name, known)
                raise pipeline.sheet.error(UnknownParameter, message, ("queries", place, "params", name), hint)


def _check_declared(pipeline: Pipeline) -> None:
    """The sources and sinks that queries declare are those of the file."""
    try:
        check_declared(pipeline.model, pipeline.queries, pipeline.schema.type)
    except PipelineError as error:
        raise pipeline.located(error) from None


def _check_sinks(pipeline: Pipeline) -> None:
    """Every sink has something to write."""
    sheet, known = pipeline.sheet, {query.name or "": query for query in pipeline.queries}
    for place, sink in enumerate(pipeline.model.sinks):
        if sink.query is not None and sink.query not in known:
            hint = did_you_mean(sink.query, known)
            message = f"there is no query `{sink.query}`"
            raise sheet.error(UnknownName, message, ("sinks", place, "query"), hint, value=True)
        if sink.name is not None and not any(takes(sink, query) for query in pipeline.queries):
            message = f"nothing goes to sink `{sink.name}`: no query declares it"
            hint = f"write `DECLARE SINK {sink.name} (…)` before a query, or name one here: `query = …`"
            raise sheet.error(BadValue, message, ("sinks", place, "name"), hint, value=True)
        if sink.output == "timeouts" and not any(_timeouts(pipeline, sink.query)):
            which = "no query" if sink.query is None else f"query `{sink.query}`"
            said = f"{which} has {'' if sink.query is None else 'no '}TIMEOUTS INTO …"
            raise sheet.error(BadValue, said, ("sinks", place, "output"), value=True)
    _check_compressed(pipeline)


def _check_compressed(pipeline: Pipeline) -> None:
    """Matches over the budget are emitted compressed under that policy only, and must go somewhere then."""
    emits = pipeline.model.budget.policy == "emit_compressed"
    places = [place for place, sink in enumerate(pipeline.model.sinks) if sink.output == "compressed"]
    if places and not emits:
        hint = "OUTPUT COMPRESSED of a query is among its matches"
        message = '`compressed` is for `[budget] policy = "emit_compressed"`'
        raise pipeline.sheet.error(BadValue, message, ("sinks", places[0], "output"), hint, value=True)
    if emits and not places:
        hint = 'add `[[sinks]] output = "compressed"`'
        message = "matches over the budget are emitted compressed, and no sink takes them"
        raise pipeline.sheet.error(BadValue, message, ("budget", "policy"), hint, value=True)


def _timeouts(pipeline: Pipeline, name: str | None) -> Iterator[str]:
    for query in pipeline.queries:
        if name in (None, query.name) and query.tree.timeouts is not None:
            yield query.name or ""
