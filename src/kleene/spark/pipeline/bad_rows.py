"""How many rows of the sources may be bad."""

from __future__ import annotations

from kleene.errors import BadRowLimit
from kleene.spark.pipeline.reading import Pipeline


def check_limit(pipeline: Pipeline, rows: int, bad: int) -> None:
    """Whether there are more bad rows than the file allows."""
    settings = pipeline.model.bad_rows
    limit = settings.limit or 0
    if settings.policy == "keep" or bad <= (limit * rows if isinstance(limit, float) else limit):
        return
    hint = f"they are in `{settings.path}`" if settings.path else "`[bad_rows] path` keeps them to look at"
    message = f"{bad:,} of {rows:,} rows are bad, and at most {allowed(pipeline)} may be; nothing was matched"
    raise pipeline.sheet.error(BadRowLimit, message, ("bad_rows", "limit"), hint)


def allowed(pipeline: Pipeline) -> str:
    """The limit in words."""
    limit = pipeline.model.bad_rows.limit or 0
    return f"{limit:.2%} of the rows" if isinstance(limit, float) else f"{limit:,}"
