"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class OutputShape(StrEnum):
    table = "table"
    jsonl = "jsonl"
    parquet = "parquet"
    csv = "csv"


class FileShape(StrEnum):
    csv = "csv"
    tsv = "tsv"
    jsonl = "jsonl"
    parquet = "parquet"


class Runtime(StrEnum):
    process = "process"
    spark = "spark"


def _verbose(verbose: bool) -> bool:
    from kleene.cli.running import show_logging

    if verbose:
        show_logging(verbose=True)
    return verbose


Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Show what Kleene logs, on stderr.", callback=_verbose)]
SchemaFile = Annotated[
    Path | None, typer.Option("--schema", metavar="FILE", help="A file of DECLARE statements: what the columns mean.")
]
Params = Annotated[
    list[str] | None,
    typer.Option("--param", "-p", metavar="NAME=VALUE", help="A value for :NAME in the query; may be repeated."),
]
InputFormat = Annotated[
    FileShape | None, typer.Option("--input-format", help="The format of the events, where their ending misleads.")
]
Separator = Annotated[
    str | None, typer.Option("--separator", metavar="CHAR", help="What separates the columns of a CSV file; a comma.")
]
