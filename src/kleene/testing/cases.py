"""Case files: readable text that holds schema, events, a query and its expected matches, for every executor.

A file holds several cases; each begins with `case:`. See `tests/cases/README.md` for the notation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from textwrap import dedent
from typing import Any

from kleene.errors import BadDeclaration
from kleene.lang import recognise
from kleene.pattern.schema import Schema
from kleene.queries.any_query import EQL_SPELLINGS, STREAM_SPELLINGS, AnyQuery, read_query

_ONE_LINE = ("case", "rule", "why")
_BLOCKS = ("schema", "events", "streams", "spelling", "query", "params", "expect", "timeouts")
_SECTION = re.compile(rf"({'|'.join((*_ONE_LINE, *_BLOCKS))}):[ \t]*(.*)")
_EVENT = re.compile(
    r"(?P<label>[A-Za-z_]\w*)"
    r"(?::(?P<type>-|[A-Za-z_][\w-]*|`[^`]+`))?"
    r"(?:@(?P<start>t'[^']*'|-?\d+)(?:\.\.(?P<end>t'[^']*'|-?\d+))?)?"
    r"(?:\((?P<attributes>(?:[^()']|'(?:[^']|'')*')*)\))?"
)
_ATTRIBUTE = re.compile(r"\s*([A-Za-z_]\w*|`[^`]+`)\s*=\s*(t?'(?:[^']|'')*'|[^,']+?)\s*(?:,|$)")
_BINDING = re.compile(r"([^\s=]+)=(\[[^\]]*\]|'[^']*'|t'[^']*'|\S+)")
_ERROR = re.compile(r"error:\s*(KL\d+)(?:\s+at\s+(\d+):(\d+))?\s*\Z")


@dataclass(frozen=True, slots=True)
class ExpectedError:
    code: str
    line: int | None = None
    column: int | None = None
    hint: str | None = None


@dataclass(frozen=True)
class Case:
    """One case. Expected matches name events by label; results of streams are rows of values."""

    name: str
    place: str
    rule: str
    why: str
    declarations: str
    # Rows as dicts with a label each; by stream when the case has several.
    events: dict[str, list[dict[str, Any]]]
    labels: dict[str, list[str]]
    queries: tuple[str, ...]
    params: dict[str, Any]
    # One tuple a match, duplicates kept; None when an error is expected.
    expected: tuple[tuple[Any, ...], ...] | None
    error: ExpectedError | None
    warnings: frozenset[str]
    timeouts: frozenset[tuple[Any, ...]] | None = None
    # One a query; None where the text says it.
    spellings: tuple[str | None, ...] = ()

    @property
    def schema(self) -> Schema:
        return Schema.from_declarations(self.declarations) if self.declarations.strip() else Schema()

    @property
    def rows(self) -> Any:
        """The events as `match` takes them."""
        return self.events.get("", self.events)

    def read_queries(self) -> list[AnyQuery]:
        """Its queries, each in its spelling, with the case's parameters."""
        spelled = zip(self.queries, self.spellings, strict=True)
        return [read_query(text, params=self.params, spelling=spelling) for text, spelling in spelled]

    @property
    def of_streams(self) -> bool:
        """Whether one of its queries is of CESAR's algebra, to which every column of an event is an attribute."""
        return any(recognise(text) in STREAM_SPELLINGS for text in self.queries)

    @property
    def of_detections(self) -> bool:
        """Whether one of its queries is EQL."""
        return any(recognise(text) in EQL_SPELLINGS for text in self.queries)

    @property
    def all_labels(self) -> list[str]:
        return [label for labels in self.labels.values() for label in labels]


@dataclass
class _Sections:
    name: str
    place: str
    parts: list[tuple[str, str]] = field(default_factory=list)

    def one(self, name: str) -> str:
        return "\n".join(text for section, text in self.parts if section == name)

    def many(self, name: str) -> list[str]:
        return [text for section, text in self.parts if section == name]


def read_cases(folder: Path) -> list[Case]:
    """All cases below a folder, in order."""
    return [case for path in sorted(folder.rglob("*.case")) for case in read_case_file(path)]


def read_case_file(path: Path) -> list[Case]:
    return [_case(sections) for sections in _sections(path)]


def _sections(path: Path) -> Iterator[_Sections]:
    current: _Sections | None = None
    section, lines = "", list[str]()

    def close() -> None:
        if current is not None and section:
            current.parts.append((section, dedent("\n".join(lines)).strip("\n")))

    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("#"):
            continue
        heading = _SECTION.match(line)
        if heading is None:
            if line.strip() and not line.startswith((" ", "\t")):
                raise BadDeclaration(f"{path.name}:{number}: `{line.strip()[:30]}` opens no section of a case")
            lines.append(line)
            continue
        close()
        section, lines = heading[1], [heading[2]] if heading[2] else []
        if section == "case":
            if current is not None:
                yield current
            current, section = _Sections(heading[2].strip(), f"{path.stem}:{number}"), ""
    close()
    if current is not None:
        yield current


def _case(sections: _Sections) -> Case:
    schema_text = sections.one("schema")
    schema = Schema.from_declarations(schema_text) if schema_text.strip() else Schema()
    events, labels = _events(sections, schema)
    expect = sections.one("expect").splitlines()
    error = _expected_error(expect)
    warnings = frozenset(line.split(":")[1].strip() for line in expect if line.startswith("warning:"))
    rows = [line for line in expect if line.strip() and not line.startswith(("warning:", "error:", "hint:", "none"))]
    timeouts = [line for line in sections.one("timeouts").splitlines() if line.strip() and line.strip() != "none"]
    has_timeouts = bool(sections.many("timeouts"))
    return Case(
        sections.name,
        sections.place,
        sections.one("rule"),
        sections.one("why"),
        schema_text,
        events,
        labels,
        tuple(sections.many("query")),
        {name: _value(text) for name, text in _ATTRIBUTE.findall(sections.one("params"))},
        None if error is not None else tuple(_expected(line) for line in rows),
        error,
        warnings,
        frozenset(_expected(line) for line in timeouts) if has_timeouts else None,
        tuple(_spellings(sections)),
    )


def _spellings(sections: _Sections) -> Iterator[str | None]:
    """A spelling is that of the query below it."""
    spelling: str | None = None
    for section, text in sections.parts:
        if section == "spelling":
            spelling = text.strip()
        elif section == "query":
            yield spelling
            spelling = None


def _expected_error(lines: list[str]) -> ExpectedError | None:
    for place, line in enumerate(lines):
        match = _ERROR.match(line.strip())
        if match is not None:
            hint = next((rest[5:].strip() for rest in lines[place + 1 :] if rest.startswith("hint:")), None)
            return ExpectedError(
                match[1], int(match[2]) if match[2] else None, int(match[3]) if match[3] else None, hint
            )
        if line.startswith("error:"):
            raise BadDeclaration(f"cannot read `{line}`")
    return None


def _expected(line: str) -> tuple[Any, ...]:
    """`a=a1 b=[b2 b3] c=-` as a comparable tuple; with `row` in front, values."""
    text = line.strip()
    is_row = text.startswith("row ")
    return tuple(sorted((name, _bound(value, is_row)) for name, value in _BINDING.findall(text)))


def _bound(text: str, is_row: bool) -> Any:
    if text.startswith("["):
        return tuple(text[1:-1].split())
    if text == "-":
        return None
    return _value(text) if is_row or text.isdigit() else text


def _value(text: str) -> Any:
    """A value, or, where it is none, the label of an event."""
    text = text.strip()
    if text.startswith("t'"):
        return datetime.fromisoformat(text[2:-1])
    if text.startswith("'"):
        return text[1:-1].replace("''", "'")
    if text.casefold() in ("true", "false", "null"):
        return {"true": True, "false": False, "null": None}[text.casefold()]
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text


def _events(sections: _Sections, schema: Schema) -> tuple[dict[str, list[dict[str, Any]]], dict[str, list[str]]]:
    streams = {"": sections.one("events")}
    if sections.many("streams"):
        lines = [line.split(":", 1) for line in sections.one("streams").splitlines() if line.strip()]
        streams = {name.strip(): text for name, text in lines}
    events: dict[str, list[dict[str, Any]]] = {}
    labels: dict[str, list[str]] = {}
    for name, text in streams.items():
        events[name], labels[name] = [], []
        for label, row in _rows(text, schema, typed=name == ""):
            events[name].append(row)
            labels[name].append(label)
    return events, labels


def _rows(text: str, schema: Schema, *, typed: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    position = 0
    text = text.strip()
    while position < len(text):
        match = _EVENT.match(text, position)
        if match is None:
            raise BadDeclaration(f"cannot read the event at `{text[position : position + 30]}`")
        position = match.end()
        while position < len(text) and text[position].isspace():
            position += 1
        yield match["label"], _row(match, schema, typed)


def _row(match: re.Match[str], schema: Schema, typed: bool) -> dict[str, Any]:
    label = match["label"]
    letters = re.match(r"[A-Za-z_]+", label)
    digits = re.search(r"\d+\Z", label)
    row: dict[str, Any] = {}
    if typed and schema.constant_type is None:
        kind = match["type"] or (letters[0].upper() if letters else label)
        row[schema.type] = None if kind == "-" else kind.strip("`")
    start = None if match["start"] is None else _value(match["start"])
    end = start if match["end"] is None else _value(match["end"])
    row[schema.time] = end if end is not None else int(digits[0]) if digits else None
    if schema.start is not None:
        row[schema.start] = start if start is not None else row[schema.time]
    for name, value in _ATTRIBUTE.findall(match["attributes"] or ""):
        row[name.strip("`")] = _value(value)
    return row
