"""What a pipeline file may say. Each part is frozen, and a key that it does not know is an error."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StrictInt, model_validator
from pydantic_core import PydanticCustomError

from kleene.spark.pipeline.kinds import is_column_type

Name = Annotated[str, Field(pattern=r"\A[^\W\d][\w-]*\Z")]
TableName = Annotated[str, Field(pattern=r"\A[^\W\d]\w*(\.[^\W\d]\w*){0,2}\Z")]
Scalar = str | bool | int | float
Count = Annotated[int, Field(ge=1)]
Hosts = str | tuple[str, ...]

FILES = ("parquet", "csv", "json", "orc")
TEXT = ("csv", "json")
# Options of the reader of text files that Kleene sets, so that no row is lost.
_OURS = ("mode", "columnnameofcorruptrecord")
# Options of Kafka's reader and writer that other keys set.
_OF_KAFKA = {
    "kafka.bootstrap.servers": "bootstrap",
    "startingoffsets": "starting_offsets",
    "failondataloss": "fail_on_data_loss",
    **dict.fromkeys(("subscribe", "subscribepattern", "assign", "topic"), "topic"),
}
QUERY_PLACE = "{query}"


def place_key(kind: str) -> str:
    """The key that says where a kind of source or sink is."""
    return {"table": "table", "memory": "table", "kafka": "topic"}.get(kind, "path")


def _wrong(key: str, message: str, hint: str | None = None) -> PydanticCustomError:
    """An error at a key of the part, which is named apart because a check of the whole part knows no place."""
    return PydanticCustomError("kleene", "{message}", {"message": message, "key": key, "hint": hint})


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, regex_engine="python-re")


class Source(Section):
    """Where events come from."""

    name: Name
    kind: Literal["parquet", "csv", "json", "orc", "table", "kafka"]
    path: str | tuple[str, ...] | None = None
    table: TableName | None = None
    bootstrap: Hosts | None = None
    topic: Annotated[str, Field(pattern=r"\A[A-Za-z0-9._-]{1,249}\Z")] | None = None
    # Of Kafka: where a new checkpoint begins, and whether messages that are gone end the run.
    starting_offsets: str = "earliest"
    fail_on_data_loss: bool = True
    options: dict[str, Scalar] = {}
    # The types of the columns of a text file, in which a file with a header may leave some out, and of a message.
    declared: dict[str, str] = Field({}, alias="schema")
    # Our name for a column, and the source's.
    columns: dict[str, str] = {}
    casts: dict[str, str] = {}

    @property
    def paths(self) -> tuple[str, ...]:
        return () if self.path is None else (self.path,) if isinstance(self.path, str) else self.path

    @model_validator(mode="after")
    def _check(self) -> Self:
        _check_place(f"{self.kind} source", self)
        if self.path == ():
            raise _wrong("path", "a list of paths has at least one")
        if self.kind == "kafka" and not self.declared:
            raise _wrong("", "a kafka source needs a `schema`", "the columns of its messages, which are JSON")
        for key in {"starting_offsets", "fail_on_data_loss"} & self.model_fields_set if self.kind != "kafka" else ():
            raise _wrong(key, f"a {self.kind} source has no `{key}`")
        for key, types in (("schema", self.declared), ("casts", self.casts)):
            for column, kind in types.items():
                if not is_column_type(kind):
                    raise _wrong(f"{key}.{column}", f"`{kind}` is no type of a column", _TYPES_HINT)
        for option in self.options if self.kind in TEXT else ():
            if option.casefold() in _OURS:
                raise _wrong(f"options.{option}", f"`{option}` is set by Kleene, so that no row is lost")
        _check_kafka(self)
        return self


_TYPES_HINT = "string, boolean, int, long, double, date, timestamp, timestamp_ntz, decimal(10,2) and the like"


class SchemaMap(Section):
    """What the columns mean: the arguments of `kleene.Schema`."""

    type: str = "type"
    time: str = "ts"
    tie_breaker: str | None = None
    start: str | None = None
    constant_type: str | None = None
    tick: str | None = None
    types: dict[str, dict[str, str]] = {}
    classes: dict[str, str] = {}


class QueryEntry(Section):
    name: Name | None = None
    text: str | None = None
    file: str | None = None
    params: dict[str, Scalar] = {}

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.text is None) == (self.file is None):
            raise _wrong("file" if self.text else "", "a query has either `text` or `file`")
        if self.name is None and self.file is None:
            raise _wrong("text", "a query with `text` needs a `name`")
        return self


class Sink(Section):
    """Where a result goes; without `name` and `query` one result of each query."""

    # What queries call it that declare it as their sink.
    name: Name | None = None
    query: str | None = None
    output: Literal["matches", "timeouts", "late", "bad_rows", "compressed"] = "matches"
    kind: Literal["parquet", "json", "csv", "orc", "table", "console", "memory", "kafka"]
    path: str | None = None
    table: str | None = None
    bootstrap: Hosts | None = None
    topic: str | None = None
    mode: Literal["overwrite", "error", "append"] = "overwrite"
    form: Literal["nested", "flat"] | None = None
    format: Annotated[str, Field(pattern=r"\A[A-Za-z]\w*\Z")] = "parquet"
    options: dict[str, Scalar] = {}
    # How many files at most; None: as many as Spark has partitions.
    files: Count | None = None
    limit: Annotated[int, Field(ge=0)] = 20

    @property
    def flat(self) -> bool:
        of_queries = self.output not in ("bad_rows", "late")
        return of_queries and (self.form == "flat" or (self.form is None and self.kind == "csv"))

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.kind == "console":
            for key in ("path", "table", "topic", "bootstrap"):
                if getattr(self, key) is not None:
                    raise _wrong(key, f"the console has no {key}")
        else:
            _check_place(f"{self.kind} sink", self)
            _check_kafka(self)
        if self.kind == "csv" and self.form == "nested":
            raise _wrong("form", "CSV holds flat rows only", "leave `form` out, or write parquet or json")
        if self.output in ("bad_rows", "late") and self.query is not None:
            what = "bad rows" if self.output == "bad_rows" else "late events"
            raise _wrong("query", f"{what} are of the sources, not of a query", "leave `query` out")
        if self.name is not None and self.output != "matches":
            raise _wrong("name", "only a sink of matches has a name, by which queries declare it", "leave `name` out")
        if self.mode == "append":
            self._check_append()
        return self

    def _check_append(self) -> None:
        """A rerun must add nothing twice, and only matches have ids to tell by."""
        if self.kind not in ("parquet", "table"):
            raise _wrong("mode", f"a {self.kind} sink cannot append", "append to parquet or to a table")
        if self.output != "matches" or self.flat:
            what = "flat rows" if self.flat else self.output.replace("_", " ")
            raise _wrong("mode", f"only matches can be appended, not {what}", "they have ids; overwrite the others")


def _check_place(what: str, part: Source | Sink) -> None:
    key = place_key(part.kind)
    needed = (key, "bootstrap") if part.kind == "kafka" else (key,)
    for name in needed:
        if getattr(part, name) is None:
            raise _wrong("", f"a {what} needs a `{name}`")
    for other in ("path", "table", "topic", "bootstrap"):
        if other not in needed and getattr(part, other) is not None:
            raise _wrong(other, f"a {what} has a `{key}`, not a `{other}`")


def _check_kafka(part: Source | Sink) -> None:
    if part.bootstrap is not None and not part.bootstrap:
        raise _wrong("bootstrap", "a list of brokers has at least one")
    for option in part.options if part.kind == "kafka" else ():
        key = _OF_KAFKA.get(option.casefold())
        if key is not None:
            raise _wrong(f"options.{option}", f"`{option}` is set by `{key}`")


class AdaptingEntry(Section):
    """As `kleene.Adapting`."""

    on: bool | None = None
    change: Annotated[float, Field(gt=0)] | None = None
    gain: Annotated[float, Field(ge=0)] | None = None
    round: Count | None = None


class SettingsEntry(Section):
    """As `kleene.Settings`, with what `kleene.Exchange` has."""

    buckets: Count | None = None
    slice_width: Count | None = None
    without: tuple[str, ...] = ()
    graphs: bool | None = None
    executor: Literal["stacks", "automaton", "trees"] | None = None
    adapting: AdaptingEntry = AdaptingEntry()


class BudgetEntry(Section):
    matches_per_event: Count | None = None
    runs_per_partition: Count | None = None
    state_bytes: Count | None = None
    policy: Literal["fail", "drop_oldest", "emit_compressed"] = "fail"


class BadRows(Section):
    policy: Literal["keep", "fail"] = "keep"
    # A number of rows, or below 1 a share of them.
    limit: Annotated[int | float, Field(ge=0)] | None = None
    path: str | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.limit is not None and self.policy == "keep":
            raise _wrong("limit", 'a limit is for `policy = "fail"`')
        if isinstance(self.limit, float) and self.limit >= 1:
            raise _wrong("limit", "a share is below 1, such as 0.01; a number of rows has no decimal point")
        return self


class StreamEntry(Section):
    """How a stream is run; without it the sources are bounded."""

    # Where Spark keeps how far it is.
    checkpoint: str
    # How long events are waited for: `10 seconds`, or a number of ticks.
    delay: str | StrictInt
    trigger: str | None = None
    available_now: bool = False
    idle: str | None = None
    # How far ahead of the clock an event may be: `1 hour`.
    ahead: str | None = None
    drop_duplicates: bool = False
    # How much a worker process may keep of slots that it has worked on; None: as much as `Stream` says.
    cache_bytes: Annotated[int, Field(strict=True, ge=0)] | None = None
    metrics: str | None = None
    prometheus: Annotated[int, Field(strict=True, ge=0, le=65535)] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if isinstance(self.delay, int) and self.delay < 0:
            raise _wrong("delay", "a delay is at least 0")
        if self.available_now and self.trigger is not None:
            raise _wrong("trigger", "a stream that stops when everything there is done has no `trigger`")
        return self


# Keys of a stream that are no settings of a query.
OF_RUNNING = ("checkpoint", "trigger", "available_now", "metrics", "prometheus")


class SparkEntry(Section):
    master: str = "local[*]"
    # Kleene itself, for the executors of a cluster where it is not installed.
    archive: str | None = None
    conf: dict[str, Scalar] = {}

    @property
    def is_local(self) -> bool:
        return self.master.startswith("local")


class PipelineModel(Section):
    sources: tuple[Source, ...]
    mapping: SchemaMap = Field(SchemaMap(), alias="schema")
    queries: tuple[QueryEntry, ...]
    sinks: tuple[Sink, ...]
    settings: SettingsEntry = SettingsEntry()
    budget: BudgetEntry = BudgetEntry()
    bad_rows: BadRows = BadRows()
    stream: StreamEntry | None = None
    spark: SparkEntry = SparkEntry()

    @model_validator(mode="after")
    def _check(self) -> Self:
        for key in ("sources", "queries", "sinks"):
            if not getattr(self, key):
                raise _wrong(key, f"`{key}` is empty", f"add `[[{key}]]`")
        return self


# The part that a key of the file holds, for hints.
PARTS: dict[str, type[Section]] = {
    "sources": Source,
    "schema": SchemaMap,
    "queries": QueryEntry,
    "sinks": Sink,
    "settings": SettingsEntry,
    "budget": BudgetEntry,
    "bad_rows": BadRows,
    "stream": StreamEntry,
    "spark": SparkEntry,
}


def keys_of(part: type[Section]) -> list[str]:
    return [field.alias or name for name, field in part.model_fields.items()]
