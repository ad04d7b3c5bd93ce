"""Names whose values are never shown: of options, of settings, and of a query's parameters."""

from __future__ import annotations

import re

SECRET = (
    r"passw|pwd|secret|token|credential|api.?key|access.?key|account.?key|private.?key|keystore.?key|auth|jaas|\bsas\b"
)
_SECRET_NAME = re.compile(SECRET, re.IGNORECASE)


def is_secret(name: str) -> bool:
    """Whether the value of this name is never shown.

    >>> is_secret("api_key"), is_secret("spark.hadoop.fs.s3a.secret.key"), is_secret("key")
    (True, True, False)
    """
    return _SECRET_NAME.search(name) is not None
