"""What was worked out for a query last, kept for the next run of it: most queries run again and again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Recent(Generic[T]):
    """Results by query, which is known as an object: to compare queries would take as long as the work itself."""

    def __init__(self, most: int = 64) -> None:
        """`most`: how many queries are remembered; the ones that were not asked for longest are forgotten."""
        self._most = most
        # The query is held, so that no other object can have its id.
        self._results: OrderedDict[int, tuple[object, object, T]] = OrderedDict()

    def get(self, query: object, given: object, make: Callable[[], T]) -> T:
        """The result for a query and what else is given, which is compared by value; made where it is not known."""
        known = self._results.get(id(query))
        if known is not None and known[0] is query and known[1] == given:
            return known[2]
        result = make()
        self._results.pop(id(query), None)
        self._results[id(query)] = query, given, result
        while len(self._results) > self._most:
            self._results.popitem(last=False)
        return result
