"""Fingerprints that do not depend on names or on the order of joins; averages, changes and defaults of statistics."""

from __future__ import annotations

import random

import pytest

from kleene.optimize import fingerprints
from kleene.optimize.statistics import DEFAULTS, Known, Statistics, assumed, changed, merged, scaled
from kleene.optimize.trees.all_trees import all_trees
from kleene.optimize.trees.options import options
from kleene.pattern import Query
from kleene.pattern.query import BoundQuery
from kleene.plan.physical import Scan


def bound(text: str) -> BoundQuery:
    return Query(text).bind()


def clause_names(text: str) -> list[str]:
    query = bound(text)
    known = {component.variable: component for component in query.components}
    return [fingerprints.of_clause(clause, known) for clause in query.conditions.positive]


def scan_name(text: str) -> str:
    query = bound(text)
    [only] = query.components
    return fingerprints.of_scan(Scan(only, query.conditions.positive))


def root_names(text: str) -> set[str]:
    """The fingerprints of the roots of all trees."""
    query = bound(text)
    known = {component.variable: component for component in query.components}
    [logical] = options(query)
    return {fingerprints.of_node(tree.root, known, query.partition) for tree in all_trees(query, logical)}


# Fingerprints ------------------------------------------------------------------------------------------------------


def test_a_clause_is_named_after_classes_not_variables() -> None:
    assert clause_names("PATTERN A a ; B b WHERE a.x < b.x") == clause_names("PATTERN A v ; C c ; B w WHERE v.x < w.x")
    assert clause_names("PATTERN A a ; B b WHERE a.x < b.x") != clause_names("PATTERN A a ; C b WHERE a.x < b.x")
    assert clause_names("PATTERN A a ; B b WHERE a.x < b.x") != clause_names("PATTERN A a ; B b WHERE a.x < b.y")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a.x > b.x", "b.x < a.x"),
        ("a.x >= b.y", "b.y <= a.x"),
        ("a.x = b.x", "b.x = a.x"),
        ("a.x = 1 or b.x != a.y", "a.y != b.x or 1 = a.x"),
    ],
)
@pytest.mark.parametrize("pattern", ["A a ; B b", "A a ; A b"])
def test_a_clause_can_be_written_either_way(pattern: str, one: str, other: str) -> None:
    assert clause_names(f"PATTERN {pattern} WHERE {one}") == clause_names(f"PATTERN {pattern} WHERE {other}")


def test_components_of_one_class_are_told_apart_by_their_places() -> None:
    assert clause_names("PATTERN A a ; A b WHERE a.x < b.x") != clause_names("PATTERN A a ; A b WHERE b.x < a.x")
    assert clause_names("PATTERN A a ; A b WHERE a.x < b.x") == clause_names("PATTERN B c ; A p ; A q WHERE p.x < q.x")


def test_a_scan_is_its_class_and_its_conditions_in_any_order() -> None:
    assert scan_name("PATTERN A a WHERE a.x = 1 AND a.y < 2") == scan_name("PATTERN A b WHERE 2 > b.y AND b.x = 1")
    assert scan_name("PATTERN A a WHERE a.x = 1") != scan_name("PATTERN A a WHERE a.x = 1.0")
    assert scan_name("PATTERN A a") != scan_name("PATTERN ANY(A, B) a")
    assert scan_name("PATTERN ANY(B, A) a") == scan_name("PATTERN ANY(A, B) a")


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN A a ; B b ; C c ; D d WHERE a.x = c.x AND b.x < d.x",
        "PATTERN A a & B b & C c & A d WHERE a.x = c.x AND b.x < d.x",
        "PATTERN A a ; !(B b) ; C c ; D d WHERE b.x = c.x AND a.x < d.x WITHIN 9",
        "PATTERN A a ; B+ ; C c ; D d WHERE sum(B.x) < c.x AND B.y = a.y WITHIN 9",
        "PATTERN A a ; (B b | C c) ; (D d & E e & F f) WHERE a.x = c.x AND d.x < e.x",
    ],
)
def test_all_trees_of_a_pattern_have_the_same_fingerprint(text: str) -> None:
    assert len(root_names(text)) == 1


def test_what_is_joined_tested_forbidden_or_grouped_tells_sub_patterns_apart() -> None:
    texts = [
        "PATTERN A a ; B b WITHIN 9",
        "PATTERN B b ; A a WITHIN 9",
        "PATTERN A a & B b WITHIN 9",
        "PATTERN A a ; B b WHERE a.x < b.x WITHIN 9",
        "PATTERN A a ; B b WHERE a.x < 4 WITHIN 9",
        "PATTERN A a ; B b WHERE [x] WITHIN 9",
        "PATTERN A a ; !(C c) ; B b WITHIN 9",
        "PATTERN A a ; !(C c) ; B b WHERE c.x = a.x WITHIN 9",
        "PATTERN A a ; !(C c) ; B b WHERE c.x = b.x WITHIN 9",
        "PATTERN A a ; B b ; !(C c) WITHIN 9",
        "PATTERN A a ; C+ ; B b WITHIN 9",
        "PATTERN A a ; C^2 ; B b WITHIN 9",
        "PATTERN A a ; B+ b[] WITHIN 9",
    ]
    names = [name for text in texts for name in root_names(text)]
    assert len(set(names)) == len(names) == len(texts)


def test_a_conjunction_has_no_order() -> None:
    one = root_names("PATTERN A a & B b & C c WHERE a.x < b.x")
    assert one == root_names("PATTERN C p & B q & A r WHERE r.x < q.x")
    assert one != root_names("PATTERN C p & B q & A r WHERE q.x < r.x")


# Statistics --------------------------------------------------------------------------------------------------------


def test_what_nobody_measured_is_assumed() -> None:
    query = bound("PATTERN A a ; B b WHERE a.x = b.x AND a.x < b.y AND a.x != b.y AND (a.y = b.z OR a.y = 1)")
    shares = [assumed(clause) for clause in query.conditions.positive]
    assert shares == pytest.approx([0.1, 1 / 3, 0.9, 1 - 0.9 * 0.9])
    assert Known(Statistics(), query.components).rate(Scan(query.components[0])) == DEFAULTS.rate


def test_a_rate_is_that_of_the_scan_or_that_of_the_class_and_its_conditions() -> None:
    query = bound("PATTERN A a WHERE a.x = 1")
    plain, masked = Scan(query.components[0]), Scan(query.components[0], query.conditions.positive)
    of_class = Statistics({fingerprints.of_scan(plain): 50.0})
    assert Known(of_class, query.components).rate(masked) == pytest.approx(5.0)
    both = Statistics({fingerprints.of_scan(plain): 50.0, fingerprints.of_scan(masked): 7.0})
    assert Known(both, query.components).rate(masked) == 7.0


def test_merged_is_a_weighted_average_of_what_both_know() -> None:
    older = Statistics({"a": 10.0, "b": 4.0}, {"p": 0.5}, {"n": 100.0}, keys=2.0, sampled=10)
    newer = Statistics({"a": 20.0, "c": 6.0}, {"p": 0.1}, {}, keys=4.0, sampled=5)
    both = merged(older, newer, 0.25, 5.0)
    assert both.rates == {"a": 12.5, "b": 4.0, "c": 6.0}
    assert both.selectivities == pytest.approx({"p": 0.4})
    assert both.cardinalities == {"n": 100.0}
    assert (both.keys, both.sampled) == (2.5, 15)
    assert merged(Statistics(), newer, 0.25, 5.0) == newer


def test_merged_begins_anew_where_a_value_has_changed_by_more_than_the_threshold() -> None:
    older = Statistics({"a": 10.0, "b": 10.0}, {"p": 1.0, "q": 1.0}, keys=2.0, sampled=10)
    newer = Statistics({"a": 20.0, "b": 20.1}, {"p": 0.5, "q": 0.02}, keys=9.0, sampled=5)
    both = merged(older, newer, 0.75, 1.0)
    assert both.rates == {"a": 17.5, "b": 20.1}
    assert both.selectivities == {"p": 0.625, "q": 0.02}
    assert both.keys == 9.0


def test_changed_is_relative_to_what_was_known() -> None:
    old = Statistics({"a": 10.0}, {"p": 0.5}, sampled=1)
    assert not changed(old, Statistics({"a": 11.9}, {"p": 0.42}), 0.2)
    assert changed(old, Statistics({"a": 12.1}, {"p": 0.5}), 0.2)
    assert changed(old, Statistics({"a": 10.0}, {"p": 0.41}), 0.2)
    assert changed(old, Statistics({"a": 10.0, "b": 1.0}, {"p": 0.5}), 0.2)
    assert not changed(old, Statistics(), 0.2)


def test_scaled_misleads_about_the_named_statistics_only() -> None:
    chance = random.Random(1)
    known = Statistics({"a": chance.random(), "b": 2.0}, {"p": 0.5}, {"a": 3.0})
    wrong = scaled(known, 1000.0, {"a", "p"})
    assert wrong.rates == {"a": known.rates["a"] * 1000, "b": 2.0}
    assert (wrong.selectivities, wrong.cardinalities) == ({"p": 1.0}, {"a": 3000.0})
    assert scaled(known, 0.001).rates["b"] == 0.002
