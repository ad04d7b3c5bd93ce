"""Plans for people: what the text says, and that the picture holds nothing that Mermaid would read as syntax."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest

import kleene
from kleene.optimize.rules import ALL_RULES
from kleene.pattern.query import Query
from kleene.plan.mermaid import label

THEFT = """PATTERN SEQ(Shelf a, !(Register b), Exit c)
WHERE [tag] AND a.price > 5 AND c.weight < a.weight AND b.till = a.till WITHIN 12 hours"""
RISE = """PATTERN SEQ(Stock+ a[], !(Halt h), Stock b)
WHERE skip_till_next_match(a[], h, b) {
    [symbol] and a[1].volume > 1000 and a[i].price > avg(a[..i-1].price) and count(a) > 2
    and b.volume < 80% * a[a.LEN].volume }
WITHIN 1 hour"""


def plan_of(text: str, *without: str) -> str:
    """The plan's part of the text, each line without its indent and with single spaces."""
    made = kleene.explain(text, settings=kleene.Settings(without=frozenset(without)))
    return "\n".join(" ".join(line.split()) for line in made.text.split("\nplan\n")[1].splitlines())


def test_stacks_scan_then_construct() -> None:
    plan = plan_of(THEFT)
    for line in (
        "executor stacks (SASE §4): every sequence is built from its last event back",
        "partition by tag: stacks of different keys never meet",
        "scan a Shelf where a.price > 5",
        "scan c Exit",
        "bind a c.weight < a.weight",
        "window stops scan and construction early",
        "no b Register of the same tag, between a and c: tested on whole matches",
        "with b.till = a.till",
        "output one row a match, when its last event `c` has come",
    ):
        assert line in plan.splitlines(), plan


def test_a_rule_that_is_off_moves_its_conditions() -> None:
    plan = plan_of(THEFT, "push_to_construction", "push_window", "push_simple_predicates", "push_equivalence")
    for line in (
        "partition none",
        "scan a Shelf",
        "whole sequence c.tag = a.tag",
        "a.price > 5",
        "c.weight < a.weight",
        "window tested on whole sequences",
        "switched off push_simple_predicates, push_equivalence, push_to_construction, push_window",
    ):
        assert line in plan.splitlines(), plan
    assert "bind" not in plan


def test_the_automaton_tests_on_its_edges() -> None:
    plan = plan_of(RISE)
    for line in (
        "executor automaton (SASE+ §3–5): each event is offered to the open runs",
        "begin a[1] Stock where a[1].volume > 1000",
        "take a[i] Stock",
        "and with the run: a[i].price > avg(a[..i-1].price)",
        "leave a count(a) > 2",
        "begin b Stock",
        "and with the run: b.volume < 0.8 * a[a.LEN].volume",
        "window a run ends as soon as its window has closed",
        "no h Halt of the same symbol, between a and b: tested when b begins",
        "merging runs with the same future are one (SASE+ §5.2.2)",
    ):
        assert line in plan.splitlines(), plan


def test_the_automaton_without_its_rules() -> None:
    plan = plan_of(RISE, "merge_runs", "push_window", "push_negation")
    assert "merging each run by itself" in plan
    assert "window tested on complete runs" in plan
    assert "no h Halt of the same symbol, between a and b: tested on whole matches" in plan


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "PATTERN SEQ(A a, B b, !(C c)) WITHIN 5",
            "no c C, after b within the window: tested when the window has closed",
        ),
        ("PATTERN SEQ(!(C c), A a, B b) WITHIN 5", "no c C, before a within the window: tested on whole matches"),
        ("PATTERN SEQ(A a, B b, !(C c)) WITHIN 5", "output one row a match, when its window has closed"),
        ("PATTERN SEQ(A{3,5} a[], B b)", "leave a at least 3 events"),
        ("PATTERN A a", "window none"),
        (
            "PATTERN A a OUTPUT NON_OVERLAP",
            "output the first of the matches that overlap, when its last event `a` has come",
        ),
        ("DECLARE CLASS Big IS A WHERE x > 5 PATTERN Big b", "scan b Big (A where x > 5)"),
        ("PATTERN ANY(A, B) v", "scan v A or B"),
        ("PATTERN SEQ(A a, B? b)", "alternative 2 of 2: A a"),
        (
            "PATTERN A & B",
            "executor tree of joins (ZStream §4): records are put together from the leaves up",
        ),
    ],
)
def test_a_line_of_the_plan(text: str, line: str) -> None:
    assert line in plan_of(text).splitlines(), plan_of(text)


def test_rules_are_applied_idle_or_off() -> None:
    plan = plan_of("PATTERN SEQ(A a, B b) WHERE [x, y] AND a.z < b.z WITHIN 5", "merge_runs")
    said = {line.split(" ")[0]: line for line in plan.splitlines()}
    assert said["rules"] == "rules push_equivalence, push_other_equivalences, push_to_construction, push_window"
    assert said["no"] == "no effect push_simple_predicates, push_to_edges, push_negation, look_up_runs"
    assert said["switched"] == "switched off merge_runs"


def test_open_parameters_are_named() -> None:
    text = "PATTERN SEQ(A a, B b) WHERE a.x > :low WITHIN :w"
    assert plan_of(text).endswith("It cannot run yet: :low, :w have no value.")
    assert "scan a A where a.x > :low" in plan_of(text)
    assert "cannot run yet" not in kleene.explain(text, params={"low": 1, "w": 5}).text


def test_columns_decide_whether_conditions_compile() -> None:
    import pyarrow as pa

    columns = {"type": pa.array([], pa.string()), "ts": pa.array([], pa.int64())}
    table = pa.table(columns | {"x": pa.array([], pa.decimal128(10, 2))})
    text = "PATTERN SEQ(A a, B b) WHERE a.x < b.x"
    assert "executor  reference evaluator" in kleene.explain(text, events=table).text
    ran = kleene.explain(text, events=table, analyze=True).text
    assert "It ran: 0 matches in 0 events." in ran
    assert "executor   stacks" in kleene.explain(text).text


def test_a_run_on_stacks_counts_events_and_instances() -> None:
    events = [{"type": kind, "ts": ts, "x": ts} for ts, kind in enumerate("AABBCA")]
    ran = kleene.explain("PATTERN A a ; B b WHERE a.x > 0 AND b.x > a.x + 1 WITHIN 5", events=events, analyze=True).text
    # a0 fails its own condition; b2 = a1 + 1 fails the one with a1.
    assert "counted    a: 3 events, 2 kept, 2 instances on its stack, 1 failed a condition" in ran
    assert "b: 2 events, 2 kept, 2 instances on its stack" in ran
    assert "It ran: 1 match in 6 events." in ran
    assert re.search(r"It took \d+\.\d{3} s", ran)


def test_a_run_of_the_automaton_counts_runs() -> None:
    events = [{"type": kind, "ts": ts} for ts, kind in enumerate("AAB")]
    ran = kleene.explain("PATTERN A+ a[] ; B b WHERE skip_till_next_match { }", events=events, analyze=True).text
    # [a0]; then [a0 a1] and [a1], which have the same future and are one.
    assert "counted     a: 2 events, 2 kept, 2 runs reached it" in ran
    assert "b: 1 event, 1 kept, 1 run reached it" in ran
    assert "It ran: 2 matches in 3 events." in ran


def test_a_run_on_the_reference_evaluator_counts_events() -> None:
    events = [{"type": kind, "ts": ts, "x": Decimal(ts)} for ts, kind in enumerate("AABC")]
    ran = kleene.explain("PATTERN A a ; B b WHERE a.x < b.x", events=events, analyze=True).text
    assert "executor  reference evaluator" in ran
    assert "counted   a: 2 events, 2 kept\n            b: 1 event, 1 kept" in ran
    assert "It ran: 2 matches in 4 events." in ran


def test_a_run_over_alternatives_counts_each() -> None:
    events = [{"type": kind, "ts": ts} for ts, kind in enumerate("ACB")]
    ran = kleene.explain("PATTERN A a ; C? c ; B b", events=events, analyze=True).text
    assert ran.count("counted") == 2


# The picture ---------------------------------------------------------------------------------------------------------

_LABEL = r'"(?:[\w .,:=+*/!§–…≤≥-]|#\d+;|<br/>)*"'
_NODE = rf"\w+(?:\(\[{_LABEL}\]\)|\(\({_LABEL}\)\)|\[{_LABEL}\])"
_EDGE = rf"\w+ (?:-->|-\.->)(?:\|{_LABEL}\|)? \w+"
_LINE = re.compile(
    rf"flowchart LR|    (?:{_NODE}|{_EDGE}|subgraph \w+\[{_LABEL}\]|end|{_NODE} --> {_NODE})",
)
_CASES = [
    THEFT,
    RISE,
    "PATTERN A & B",
    "PATTERN SEQ(A a, !(N n), B b & C c, D+ d, E e, !(M m)) WHERE [k] AND a.x = b.x AND n.y > a.y WITHIN 5",
    "PATTERN SEQ(A a, (B b | SEQ(C c, D d)), E? e & F f) WHERE a.x < 3 WITHIN 5",
    "PATTERN SEQ(A a, B? b, C+ c[], !(D d)) WITHIN 5",
    "PATTERN SEQ(A a, B b & !(C c), !(D d ; E e), F f) & !(G g) WHERE d.x = e.x WITHIN 5",
    """PATTERN SEQ(A a, B b) WHERE a.x = '"]|#;`%%{<b>' AND b.y CONTAINS 'end' OR a.x < b.x""",
]


@pytest.mark.parametrize("text", _CASES)
def test_the_picture_is_a_flowchart(text: str) -> None:
    for line in kleene.explain(text).mermaid.splitlines():
        assert _LINE.fullmatch(line), line


def test_edges_carry_their_conditions() -> None:
    theft, rise = (kleene.explain(text).mermaid for text in (THEFT, RISE))
    assert 'p0_start -->|"a.price #62; 5"| p0_0' in theft
    assert 'p0_0 -->|"no b"| p0_1' in theft
    assert 'p0_1 -.->|"c.weight #60; a.weight"| p0_0' in theft
    assert re.search(r'p0_0 -->\|"take<br/>a#91;i#93;\.price', rise)
    assert 'p0_0 -->|"leave: count#40;a#41; #62; 2<br/>no h<br/>b.volume' in rise


def test_labels_are_short_and_hold_no_syntax() -> None:
    assert label(['a["x"]|#']) == '"a#91;#34;x#34;#93;#124;#35;"'
    assert label(["x" * 100]) == '"' + "x" * 47 + '…"'
    assert label(map(str, range(9))) == '"0<br/>1<br/>2<br/>3<br/>… 5 more"'


# The explanation as an object ----------------------------------------------------------------------------------------


def test_a_query_explains_itself() -> None:
    query = kleene.query(THEFT)
    assert str(query.explain()) == query.explain().text == kleene.explain(query).text
    assert isinstance(query, Query), "every function takes it as it takes the plain one"
    assert repr(query.explain()) == query.explain().text


def test_the_html_is_escaped_and_needs_no_network() -> None:
    html = kleene.query(THEFT).explain()._repr_html_()
    assert "c.weight &lt; a.weight" in html
    assert '<pre class="mermaid">flowchart LR' in html
    assert "#62; 5" in html
    assert "script" not in html
    assert "http" not in html
    assert kleene.query("PATTERN A a WHERE a.x < 5")._repr_html_() == "<pre>PATTERN A a\nWHERE a.x &lt; 5</pre>"


def test_the_schema_and_the_events_are_used() -> None:
    rows = [{"kind": "A", "at": 1, "x": 2.5}]
    schema = kleene.Schema(type="kind", time="at")
    made = kleene.query("PATTERN A a WHERE a.x > 1").explain(schema, rows)
    assert "has kind string, at int, x float" in made.text


def test_the_known_rules() -> None:
    assert "push_window" in ALL_RULES
    assert len(set(ALL_RULES)) == len(ALL_RULES)
