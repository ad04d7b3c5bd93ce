"""Made-up payments by card (NEXT §1.1): a day of them, with a few frauds in it and some that only look like one.

Each card has one history, and its history is of a known kind. What it adds to the answers of the example's queries
follows from their meaning, so it is known when the history is made. Small is below 100, large above 250: all other
payments lie between, so that they can use up what waits for the next one and match nothing themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

import pyarrow as pa

# The queries of examples/fraud, by name.
SMALL_SMALL_LARGE, NEXT_MATCH, ANY_MATCH, UNLESS_CLOSED = (
    "small-small-large",
    "next-match",
    "any-match",
    "unless-closed",
)
QUERIES = (SMALL_SMALL_LARGE, NEXT_MATCH, ANY_MATCH, UNLESS_CLOSED)
MINIMUM = 200
_PAYMENTS_A_DAY = 30_000
_FIRST_DAY = datetime(2026, 3, 2)

_PAYMENT = pa.schema(
    [
        ("id", pa.string()),
        ("ts", pa.timestamp("us")),
        ("acc", pa.int64()),
        ("amount", pa.float64()),
        ("currency", pa.string()),
        ("country", pa.string()),
        ("description", pa.string()),
    ]
)
_CLOSING = pa.schema([("id", pa.string()), ("ts", pa.timestamp("us")), ("acc", pa.int64()), ("reason", pa.string())])
_CASES = pa.schema(
    [("case", pa.string()), ("who", pa.int64()), ("first", pa.timestamp("us")), ("last", pa.timestamp("us"))]
)
_COUNTRIES = (("DE", "EUR"), ("FR", "EUR"), ("GB", "GBP"), ("US", "USD"), ("DK", "DKK"))
_SMALL_SHOPS = ("corner shop", "bakery", "coffee", "parking", "bus ticket", "newspaper")
_SHOPS = ("groceries", "fuel", "shoes", "dentist", "hardware store", "garden centre")
_LARGE_SHOPS = ("electronics", "jeweller", "airline", "furniture", "hotel")
_REASONS = ("customer moved", "card lost", "customer asked")


@dataclass(frozen=True)
class CardPayments:
    """Payments, closed accounts, and the matches that the queries have in them: query, account, first and last time."""

    payments: pa.Table
    closed: pa.Table
    planted: pa.Table


def card_payments(payments: int, seed: int) -> CardPayments:
    """So many payments, the same for the same seed."""
    if payments < MINIMUM:
        raise ValueError(f"there are at least {MINIMUM} payments")
    maker = _Maker(Random(seed))
    days = -(-payments // _PAYMENTS_A_DAY)
    for day in range(days):
        maker.day(_FIRST_DAY + timedelta(days=day), payments * (day + 1) // days - len(maker.payments))
    planted = sorted(maker.planted, key=lambda case: (QUERIES.index(str(case["case"])), str(case["first"])))
    return CardPayments(
        _numbered(maker.payments, "P", _PAYMENT), _numbered(maker.closed, "C", _CLOSING), _table(planted, _CASES)
    )


def _numbered(rows: list[dict[str, object]], letter: str, schema: pa.Schema) -> pa.Table:
    """The rows in the order of their times, with ids in that order."""
    ordered = sorted(rows, key=lambda row: (str(row["ts"]), str(row["acc"])))
    return _table([{**row, "id": f"{letter}{number:06}"} for number, row in enumerate(ordered, 1)], schema)


def _table(rows: Sequence[dict[str, object]], schema: pa.Schema) -> pa.Table:
    return pa.table({name: [row.get(name) for row in rows] for name in schema.names}, schema=schema)


@dataclass
class _Card:
    account: int
    country: str
    currency: str


@dataclass
class _Maker:
    random: Random
    payments: list[dict[str, object]] = field(default_factory=list)
    closed: list[dict[str, object]] = field(default_factory=list)
    planted: list[dict[str, object]] = field(default_factory=list)
    cards: int = 0

    def day(self, midnight: datetime, size: int) -> None:
        """One day: the histories that matter and those that look like them, and honest cards for the rest."""
        full = len(self.payments) + size
        for _ in range(max(1, size // 600)):
            self.tested_and_used(midnight)
            self.tested_three_times(midnight)
            self.used_twice(midnight)
            self.something_between(midnight)
            self.closed_between(midnight)
        for history in (self.after_twelve_hours, self.too_late, self.closed_afterwards):
            history(midnight)
        while (left := full - len(self.payments)) > 12:
            honest = self.random.choice((self.daily_things, self.daily_things, self.large_things))
            honest(midnight, self.random.randint(3, 12))
        self.daily_things(midnight, left)

    # Frauds, and what each query makes of them

    def tested_and_used(self, midnight: datetime) -> None:
        """Small, small, large: all queries agree."""
        card, at = self.card(midnight), self.moment(midnight, 2, 18)
        times = self.times(at, 5, 90, 3)
        self.series(card, times, "ssl")
        self.plant(card, times[0], times[2], *QUERIES)

    def tested_three_times(self, midnight: datetime) -> None:
        """Small, small, small, large: the third small one uses up what waits for the large one; of the next match two
        small ones in a row are left, of any match each two."""
        card, at = self.card(midnight), self.moment(midnight, 2, 18)
        times = self.times(at, 5, 60, 4)
        self.series(card, times, "sssl")
        self.plant(card, times[0], times[3], NEXT_MATCH, ANY_MATCH)
        self.plant(card, times[0], times[3], ANY_MATCH)
        self.plant(card, times[1], times[3], *QUERIES)

    def used_twice(self, midnight: datetime) -> None:
        """Small, small, large, large: only any match goes on to the second large one."""
        card, at = self.card(midnight), self.moment(midnight, 2, 18)
        times = self.times(at, 5, 60, 4)
        self.series(card, times, "ssll")
        self.plant(card, times[0], times[2], *QUERIES)
        self.plant(card, times[0], times[3], ANY_MATCH)

    def something_between(self, midnight: datetime) -> None:
        """50, 60, 150, 300: in EQL the 150 is the next payment, and no large one."""
        card, at = self.card(midnight), self.moment(midnight, 2, 18)
        times = self.times(at, 5, 60, 4)
        self.series(card, times, "ssml")
        self.plant(card, times[0], times[3], NEXT_MATCH, ANY_MATCH)

    def closed_between(self, midnight: datetime) -> None:
        """The account was closed after the two small payments, so that the large one is no loss."""
        card, at = self.card(midnight), self.moment(midnight, 2, 18)
        times = self.times(at, 10, 60, 3)
        self.series(card, times, "ssl")
        self.close(card, times[1] + self.minutes(1, 8), "fraud suspected")
        self.plant(card, times[0], times[2], SMALL_SMALL_LARGE, NEXT_MATCH, ANY_MATCH)

    def closed_afterwards(self, midnight: datetime) -> None:
        """Too late to cancel anything."""
        card, at = self.card(midnight), self.moment(midnight, 2, 14)
        times = self.times(at, 5, 60, 3)
        self.series(card, times, "ssl")
        self.close(card, times[2] + self.minutes(1, 60), "fraud reported")
        self.plant(card, times[0], times[2], *QUERIES)

    def after_twelve_hours(self, midnight: datetime) -> None:
        """The large payment is twelve hours after the first small one, to the second: just within the window."""
        card, at = self.card(midnight), self.moment(midnight, 2, 9)
        self.series(card, (at, at + self.minutes(60, 300), at + timedelta(hours=12)), "ssl")
        self.plant(card, at, at + timedelta(hours=12), *QUERIES)

    def too_late(self, midnight: datetime) -> None:
        """More than twelve hours: a coffee in the morning, a hotel in the evening."""
        card, at = self.card(midnight), self.moment(midnight, 2, 9)
        self.series(card, (at, at + self.minutes(60, 300), at + timedelta(hours=12) + self.minutes(1, 90)), "ssl")

    # Honest cards: no two small payments before a large one

    def daily_things(self, midnight: datetime, payments: int) -> None:
        card = self.card()
        for at in sorted(self.moment(midnight, 6, 22) for _ in range(payments)):
            self.pay(card, at, "s" if self.random.random() < 0.7 else "m")
        if payments > 10 and self.random.random() < 0.2:
            self.close(card, self.moment(midnight, 9, 17), self.random.choice(_REASONS))

    def large_things(self, midnight: datetime, payments: int) -> None:
        """At most one small payment a day, and that wherever it falls."""
        card, small = self.card(), self.random.randrange(payments)
        for number, at in enumerate(sorted(self.moment(midnight, 8, 21) for _ in range(payments))):
            self.pay(card, at, "s" if number == small else "l" if self.random.random() < 0.3 else "m")

    # Payments

    def card(self, midnight: datetime | None = None) -> _Card:
        """A new card; one that is to be copied pays in a shop first, soon after midnight, where that happens."""
        self.cards += 1
        country, currency = self.random.choice(_COUNTRIES)
        card = _Card(470_000_000 + 7_919 * self.cards, country, currency)
        if midnight is not None:
            self.pay(card, self.moment(midnight, 0, 1), "m")
        return card

    def series(self, card: _Card, times: Sequence[datetime], sizes: str) -> None:
        for at, size in zip(times, sizes, strict=True):
            self.pay(card, at, size)

    def pay(self, card: _Card, ts: datetime, size: str) -> None:
        """A payment: small, medium or large."""
        low, high, shops = {"s": (3, 99, _SMALL_SHOPS), "m": (100, 250, _SHOPS), "l": (251, 1800, _LARGE_SHOPS)}[size]
        amount = self.random.randint(low * 100, high * 100) / 100
        where = {"currency": card.currency, "country": card.country, "description": self.random.choice(shops)}
        self.payments.append({"ts": ts, "acc": card.account, "amount": amount, **where})

    def close(self, card: _Card, ts: datetime, reason: str) -> None:
        self.closed.append({"ts": ts, "acc": card.account, "reason": reason})

    def plant(self, card: _Card, first: datetime, last: datetime, *cases: str) -> None:
        self.planted += [{"case": case, "who": card.account, "first": first, "last": last} for case in cases]

    # Times

    def times(self, first: datetime, least: int, most: int, count: int) -> list[datetime]:
        """So many times, the first given, with so many minutes between them."""
        made = [first]
        while len(made) < count:
            made.append(made[-1] + self.minutes(least, most))
        return made

    def moment(self, midnight: datetime, first_hour: int, last_hour: int) -> datetime:
        return midnight + timedelta(seconds=self.random.randint(first_hour * 3600, last_hour * 3600))

    def minutes(self, least: int, most: int) -> timedelta:
        return timedelta(seconds=self.random.randint(least * 60, most * 60))
