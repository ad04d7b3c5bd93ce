"""Every kernel can be read: few parameters, named tuples where there are many arrays, and one page of code."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from kleene import kernels

MOST_PARAMETERS = 8
MOST_LINES = 80
FILES = sorted(Path(kernels.__path__[0]).glob("*.py"))


def functions(file: Path) -> list[ast.FunctionDef]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def parameters(function: ast.FunctionDef) -> int:
    given = function.args
    return len([*given.posonlyargs, *given.args, *given.kwonlyargs])


def lines(function: ast.FunctionDef) -> int:
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_function_has_many_parameters_or_many_lines(file: Path) -> None:
    sizes = {function.name: (parameters(function), lines(function)) for function in functions(file)}
    large = {name: size for name, size in sizes.items() if size[0] > MOST_PARAMETERS or size[1] > MOST_LINES}
    assert not large, f"{file.name}: (parameters, lines) of {large}"


def test_kernels_are_looked_at() -> None:
    named = {f"{file.stem}.{function.name}" for file in FILES for function in functions(file)}
    assert {"automaton.advance", "sequence.construct", "joins.join", "expression.holds"} <= named
