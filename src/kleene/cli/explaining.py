"""`kleene explain`: how a query is understood, and how it will run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from kleene.cli.inputs import params_from, query_from, schema_from
from kleene.errors import did_you_mean
from kleene.explanation import explain_query
from kleene.optimize.rules import ALL_RULES
from kleene.plan.settings import Settings
from kleene.queries.parameters import check_parameters


@dataclass(frozen=True)
class ExplainRequest:
    """The arguments of `kleene explain`."""

    query: str
    schema: Path | None = None
    events: Sequence[str] = ()
    params: Sequence[str] = ()
    input_format: str | None = None
    without: Sequence[str] = ()
    mermaid: bool = False
    analyze: bool = False
    separator: str | None = None


def explained(request: ExplainRequest) -> str:
    for name in request.without:
        if name not in ALL_RULES:
            known = f"the rules are {', '.join(ALL_RULES)}"
            meant = did_you_mean(name, ALL_RULES) or ""
            hint = f"{meant} " if meant.startswith("did") else ""
            raise typer.BadParameter(f"there is no rule `{name}`; {hint}{known}", param_hint="--without")
    if request.analyze and not request.events:
        raise typer.BadParameter("there are no events to run it on: -i FILE", param_hint="--analyze")
    query = query_from(request.query, params_from(request.params))
    schema = schema_from(request.schema)
    check_parameters([query], schema)
    events = None
    if request.events:
        from kleene.cli.inputs import events_from

        declared = schema.declaring(query.tree.declarations)
        events = events_from(request.events, declared, request.input_format, request.separator).events
    settings = Settings(without=frozenset(request.without))
    explanation = explain_query(query, schema=schema, events=events, settings=settings, analyze=request.analyze)
    return explanation.mermaid.rstrip("\n") if request.mermaid else explanation.text
