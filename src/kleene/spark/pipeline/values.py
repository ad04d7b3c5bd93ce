"""Values that come from the environment, and values that are never shown."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kleene.pattern.secrets import SECRET, is_secret
from kleene.spark.pipeline.toml_positions import Path

HIDDEN = "***"
_NAMED = re.compile(r"\$\$\{|\$\{([A-Za-z_]\w*)\}")
_SECRET_LINE = re.compile(rf"((?:{SECRET})[\w.\"'-]*[ \t]*=[ \t]*)([^\n]+)", re.IGNORECASE)
# A password within a longer secret, such as the login of a Kafka client.
_INNER = re.compile(r"passw\w*\s*=\s*[\"']?([^\"';\s]+)", re.IGNORECASE)
# Shorter ones would be found in the middle of words.
_LEAST_SECRET = 4


def without_secrets(text: str) -> str:
    """A file's text in which nothing has moved, but no secret can be read."""
    return _SECRET_LINE.sub(lambda match: match[1] + "*" * len(match[2]), text)


def shown(values: Mapping[str, Any]) -> dict[str, str]:
    """Options as they may be printed."""
    return {name: HIDDEN if is_secret(name) else str(value) for name, value in values.items()}


def for_spark(values: Mapping[str, Any]) -> dict[str, str]:
    """Options and settings as Spark takes them."""
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in values.items()}


def secrets_in(tables: Iterable[Mapping[str, Any]]) -> list[str]:
    """The values that must not appear in any message, the longest first."""
    secrets = {str(one) for table in tables for name, value in table.items() if is_secret(name) for one in _each(value)}
    secrets |= {inner for value in secrets for inner in _INNER.findall(value)}
    return sorted((value for value in secrets if len(value) >= _LEAST_SECRET), key=len, reverse=True)


def _each(value: Any) -> Iterable[Any]:
    """A list is several secrets, each of which may appear alone."""
    return value if isinstance(value, list | tuple) else (value,)


def scrubbed(text: str, secrets: Iterable[str]) -> str:
    """The text without secrets; everything else in it stays at its place."""
    for secret in secrets:
        text = text.replace(secret, "*" * len(secret))
    return text


def from_environment(value: Any, missing: Callable[[str, Path], Exception], path: Path = ()) -> Any:
    """The value with every `${NAME}` replaced; `$${` stands for `${`. A query's text is left as it is."""
    if isinstance(value, dict):
        return {name: from_environment(part, missing, (*path, name)) for name, part in value.items()}
    if isinstance(value, list):
        return [from_environment(part, missing, (*path, place)) for place, part in enumerate(value)]
    if not isinstance(value, str) or (path[:1] == ("queries",) and path[-1:] == ("text",)):
        return value

    def replaced(match: re.Match[str]) -> str:
        if match[1] is None:
            return "${"
        if match[1] not in os.environ:
            raise missing(match[1], path)
        return os.environ[match[1]]

    return _NAMED.sub(replaced, value)
