"""Immutable nodes that exist once: equal nodes are the same object, and their hash is stored.

Hundreds of thousands of queries share most of their parts, so equality must be identity, and hashing must not walk.
`digest` is the stable form of the hash: the same in every process, for statistics and for match ids.
"""

from __future__ import annotations

from dataclasses import fields
from enum import Enum
from functools import cache
from hashlib import blake2b
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

_POOL: WeakValueDictionary[tuple[Any, ...], Interned] = WeakValueDictionary()
_LOCK = Lock()


class _Interning(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        node = super().__call__(*args, **kwargs)
        key = (cls, *[_distinct(getattr(node, name)) for name in field_names(cls)])
        with _LOCK:
            return _POOL.setdefault(key, node)


@cache
def field_names(cls: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(cls))


def _distinct(value: Any) -> Any:
    """Python takes 1, 1.0 and True for equal; as constants of a query they are not."""
    if isinstance(value, bool | float):
        return type(value), repr(value)
    if isinstance(value, tuple):
        return tuple(map(_distinct, value))
    return value


class Interned(metaclass=_Interning):
    """The root of all bound nodes; subclasses are frozen dataclasses with `slots=True, eq=False`."""

    __slots__ = ("__weakref__", "_digest", "_references")
    _digest: bytes
    # The references below this node, kept by `expressions.references`.
    _references: tuple[Any, ...]

    @property
    def digest(self) -> bytes:
        """Sixteen bytes that are the same wherever the same node is built."""
        try:
            return self._digest
        except AttributeError:
            hasher = blake2b(type(self).__name__.encode(), digest_size=16)
            for name in field_names(type(self)):
                hasher.update(_bytes_of(getattr(self, name)))
            object.__setattr__(self, "_digest", hasher.digest())
            return self._digest

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, name) for name in field_names(type(self)))


def _bytes_of(value: Any) -> bytes:
    if isinstance(value, Interned):
        return b"n" + value.digest
    if isinstance(value, tuple):
        return b"(" + b",".join(map(_bytes_of, value)) + b")"
    if isinstance(value, Enum):
        return b"e" + value.name.encode()
    return f"{type(value).__name__}:{value!r}".encode()
