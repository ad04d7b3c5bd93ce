"""A type that the query names and no event has is warned of, with the name that was probably meant."""

from __future__ import annotations

import logging

import pyarrow as pa
import pytest

import kleene

ROWS = [{"type": "Shelf", "ts": 1, "k": 1}, {"type": "Exit", "ts": 2, "k": 1}]


@pytest.fixture
def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What is logged from now on."""
    caplog.set_level(logging.WARNING, logger="kleene")
    messages: list[str] = []
    caplog.handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    return messages


def test_the_near_name_is_offered(warned: list[str]) -> None:
    kleene.match(ROWS, "PATTERN Shelv a ; Exit b")
    (text,) = warned
    assert text.splitlines()[0] == "warning[KL906]: no event is of type `Shelv`"
    assert text.splitlines()[-1] == "  = hint: did you mean `Shelf`?"


def test_a_misspelt_negation_excludes_nothing(warned: list[str]) -> None:
    assert len(kleene.match(ROWS, "PATTERN Shelf a ; !(Registr r) ; Exit b")) == 1
    assert ["no event is of type `Registr`, so that nothing is excluded" in text for text in warned] == [True]


def test_a_class_and_a_type_deep_in_a_table(warned: list[str]) -> None:
    many = pa.table({"type": ["Shelf"] * 40_000 + ["Exit"], "ts": range(40_001)})
    query = "DECLARE CLASS Out IS Exit WHERE ts > 5 PATTERN Out b"
    assert kleene.match(many, query).num_rows == 1
    assert warned == []
    kleene.match(many.set_column(0, "type", many.column("type").dictionary_encode()), query.replace("Exit", "Exxit"))
    assert ["no event is of type `Exxit`" in text for text in warned] == [True]


def test_each_query_and_what_queries_make(warned: list[str]) -> None:
    maker = "PATTERN Shelf a ; Exit b WITHIN 5 TIMEOUTS INTO Late RETURN a.k AS k INTO Theft"
    kleene.match(ROWS, [maker, "PATTERN Theft t ; Late l", "PATTERN Thft t", "PATTERN Lat l"])
    assert [text.splitlines()[0].split()[-1] for text in warned] == ["`Thft`", "`Lat`"]
    assert [text.splitlines()[-1].split()[-1] for text in warned] == ["`Theft`?", "`Late`?"]


def test_a_stream_that_is_given_may_be_empty(warned: list[str]) -> None:
    assert kleene.match({"Shelf": [], "Exit": [{"ts": 1}]}, "PATTERN Shelf a ; Exit b") == []
    assert kleene.match([], "PATTERN Shelf a", schema=kleene.Schema()) == []
    assert warned == []
