"""A made-up supermarket: RFID readings of a day or more (SASE §2), with a few cases hidden in them that queries find.

Each item lives one day, and its life is of a known kind. What a life adds to the answers of the three example queries
follows from their meaning, so it is known when the life is made; lives that only look suspicious are there too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

import pyarrow as pa

SHOPLIFTING, MISPLACED, OVERDOSE = "shoplifting", "misplaced", "overdose"
MINIMUM = 200
_EVENTS_A_DAY = 3_000
_FIRST_DAY = datetime(2026, 3, 2)

_COLUMNS = pa.schema(
    [
        ("type", pa.string()),
        ("ts", pa.timestamp("us")),
        ("id", pa.string()),
        ("shelf_id", pa.string()),
        ("category", pa.string()),
        ("manufacturer_id", pa.string()),
        ("counter_id", pa.string()),
        ("exit_id", pa.string()),
        ("name", pa.string()),
        ("medicine", pa.string()),
        ("amount", pa.int64()),
    ]
)
_CASES = pa.schema(
    [("case", pa.string()), ("who", pa.string()), ("first", pa.timestamp("us")), ("last", pa.timestamp("us"))]
)
_CATEGORIES = ("food", "drinks", "cosmetics", "toys", "household")


@dataclass(frozen=True)
class Supermarket:
    """The events, and the matches that the three queries have in them: case, item or patient, first and last time."""

    events: pa.Table
    planted: pa.Table


def supermarket(events: int, seed: int) -> Supermarket:
    """So many events, the same for the same seed."""
    if events < MINIMUM:
        raise ValueError(f"a supermarket has at least {MINIMUM} events")
    maker = _Maker(Random(seed))
    days = -(-events // _EVENTS_A_DAY)
    for day in range(days):
        maker.day(_FIRST_DAY + timedelta(days=day), events * (day + 1) // days - len(maker.events))
    rows = sorted(maker.events, key=lambda event: (event["ts"], str(event["type"]), str(event.get("id"))))
    return Supermarket(_table(rows, _COLUMNS), _table(maker.planted, _CASES))


def _table(rows: Sequence[dict[str, object]], schema: pa.Schema) -> pa.Table:
    return pa.table({name: [row.get(name) for row in rows] for name in schema.names}, schema=schema)


@dataclass
class _Item:
    id: str
    shelf: str
    category: str
    manufacturer: str


@dataclass
class _Maker:
    random: Random
    events: list[dict[str, object]] = field(default_factory=list)
    planted: list[dict[str, object]] = field(default_factory=list)
    items: int = 0

    def day(self, midnight: datetime, size: int) -> None:
        """One day: patients, the lives that matter and those that look like them, and quiet goods for the rest."""
        full = len(self.events) + size
        self.doses(midnight, size)
        share = max(1, size // 600)
        for life in (self.stolen, self.misplaced, self.carried_to_counter, self.put_back_then_bought):
            for _ in range(share):
                life(midnight)
        for life in (self.stolen_after_two_readings, self.thrown_out_at_night, self.moved_later):
            life(midnight)
        while (left := full - len(self.events)) > 5:
            if self.random.random() < 0.6:
                self.bought(midnight)
            else:
                self.resting(midnight, self.random.randint(1, 3))
        self.resting(midnight, left)

    # Lives that the queries find

    def stolen(self, midnight: datetime) -> None:
        """From the shelf to the exit."""
        item, seen = self.item(), self.moment(midnight, 9, 18)
        out = seen + self.minutes(5, 90)
        self.shelf(item, seen)
        self.exit(item, out)
        self.plant(SHOPLIFTING, item.id, seen, out)

    def stolen_after_two_readings(self, midnight: datetime) -> None:
        """Each reading at the shelf makes a match with the exit."""
        item, seen = self.item(), self.moment(midnight, 9, 13)
        again = seen + self.minutes(30, 120)
        out = again + self.minutes(5, 90)
        self.shelf(item, seen)
        self.shelf(item, again)
        self.exit(item, out)
        self.plant(SHOPLIFTING, item.id, seen, out)
        self.plant(SHOPLIFTING, item.id, again, out)

    def misplaced(self, midnight: datetime) -> None:
        """Laid down on another shelf, where it is still hours later."""
        item, seen = self.item(), self.moment(midnight, 9, 16)
        laid = seen + self.minutes(5, 50)
        other = self.other_shelf(item)
        self.shelf(item, seen)
        self.shelf(item, laid, other)
        self.shelf(item, laid + self.minutes(120, 200), other)
        self.plant(MISPLACED, item.id, seen, laid)

    def doses(self, midnight: datetime, size: int) -> None:
        """John's antibiotics, twice too much within four hours; others, and other medicine, are no concern."""

        def at(hour: int, minute: int) -> datetime:
            return midnight + timedelta(hours=hour, minutes=minute) + self.minutes(0, 10)

        for first, second in ((at(5, 0), at(7, 30)), (at(17, 30), at(18, 0))):
            self.dose(first, "John", "Antibiotics", 600)
            self.dose(second, "John", "Antibiotics", 600)
            self.plant(OVERDOSE, "John", first, second)
        for hour, minute, amount in ((0, 30, 400), (11, 45, 300), (13, 0, 300), (22, 30, 400)):
            self.dose(at(hour, minute), "John", "Antibiotics", amount)
        for number in range(size // 40):
            patient = self.random.choice(("Mary", "Ann", "Liu"))
            self.dose(self.moment(midnight, 1, 23), patient, "Antibiotics", 700)
            if number % 3 == 0:
                self.dose(self.moment(midnight, 1, 23), "John", "Aspirin", 800)

    # Lives that only look suspicious

    def carried_to_counter(self, midnight: datetime) -> None:
        """Laid on another shelf for a moment, then paid: the counter reading clears both suspicions."""
        item, seen = self.item(), self.moment(midnight, 9, 18)
        laid = seen + self.minutes(3, 20)
        paid = laid + self.minutes(3, 20)
        self.shelf(item, seen)
        self.shelf(item, laid, self.other_shelf(item))
        self.pay(item, paid)

    def put_back_then_bought(self, midnight: datetime) -> None:
        """Back on its own shelf, then paid, all within an hour of the first reading."""
        item, seen = self.item(), self.moment(midnight, 9, 18)
        laid = seen + self.minutes(3, 12)
        back = laid + self.minutes(3, 12)
        self.shelf(item, seen)
        self.shelf(item, laid, self.other_shelf(item))
        self.shelf(item, back)
        self.pay(item, back + self.minutes(3, 20))

    def thrown_out_at_night(self, midnight: datetime) -> None:
        """Carried out by staff unpaid, but more than twelve hours after its last reading."""
        item, seen = self.item(), self.moment(midnight, 6, 8)
        self.shelf(item, seen)
        self.exit(item, seen + self.minutes(12 * 60 + 30, 14 * 60))

    def moved_later(self, midnight: datetime) -> None:
        """On another shelf, but not within an hour: restocking."""
        item, seen = self.item(), self.moment(midnight, 9, 16)
        self.shelf(item, seen)
        self.shelf(item, seen + self.minutes(75, 200), self.other_shelf(item))

    def bought(self, midnight: datetime) -> None:
        item, seen = self.item(), self.moment(midnight, 8, 18)
        self.shelf(item, seen)
        if self.random.random() < 0.5:
            seen += self.minutes(5, 30)
            self.shelf(item, seen)
        self.pay(item, seen + self.minutes(3, 60))

    def resting(self, midnight: datetime, readings: int) -> None:
        item = self.item()
        for seen in sorted(self.moment(midnight, 7, 21) for _ in range(readings)):
            self.shelf(item, seen)

    # Readings

    def item(self) -> _Item:
        self.items += 1
        random = self.random
        shelf = random.randint(1, 40)
        category = _CATEGORIES[shelf % len(_CATEGORIES)]
        return _Item(f"I{self.items:05}", f"S{shelf:02}", category, f"M{random.randint(1, 9)}")

    def other_shelf(self, item: _Item) -> str:
        return self.random.choice([f"S{number:02}" for number in range(1, 41) if f"S{number:02}" != item.shelf])

    def moment(self, midnight: datetime, first_hour: int, last_hour: int) -> datetime:
        return midnight + timedelta(seconds=self.random.randint(first_hour * 3600, last_hour * 3600))

    def minutes(self, least: int, most: int) -> timedelta:
        return timedelta(seconds=self.random.randint(least * 60, most * 60))

    def shelf(self, item: _Item, ts: datetime, shelf: str | None = None) -> None:
        self.events.append(
            {
                "type": "SHELF-READING",
                "ts": ts,
                "id": item.id,
                "shelf_id": shelf or item.shelf,
                "category": item.category,
                "manufacturer_id": item.manufacturer,
            }
        )

    def pay(self, item: _Item, ts: datetime) -> None:
        """The counter, and out; sometimes the exit's reader sees an item twice."""
        counter = f"C{self.random.randint(1, 6)}"
        self.events.append({"type": "COUNTER-READING", "ts": ts, "id": item.id, "counter_id": counter})
        out = ts + self.minutes(1, 8)
        self.exit(item, out)
        if self.random.random() < 0.1:
            self.exit(item, out + timedelta(seconds=2))

    def exit(self, item: _Item, ts: datetime) -> None:
        gate = f"E{self.random.randint(1, 2)}"
        self.events.append({"type": "EXIT-READING", "ts": ts, "id": item.id, "exit_id": gate})

    def dose(self, ts: datetime, name: str, medicine: str, amount: int) -> None:
        self.events.append({"type": "MEDICINE-TAKEN", "ts": ts, "name": name, "medicine": medicine, "amount": amount})

    def plant(self, case: str, who: str, first: datetime, last: datetime) -> None:
        self.planted.append({"case": case, "who": who, "first": first, "last": last})
