"""Workers that lack Kleene end in one error that names their Python and says what to do, wherever the user stands."""

from __future__ import annotations

import sys
import venv
from pathlib import Path
from typing import Any

import pytest
from tests.users.places import HERE, environment, results

from kleene.errors import WorkersWithoutKleene
from kleene.spark.interpreter import check_interpreter, unfitness

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python of this version that has nothing."""
    home = tmp_path_factory.mktemp("bare")
    venv.create(home, with_pip=False)
    return home / "bin" / "python"


@pytest.fixture(scope="module")
def there(bare: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("job")
    script = HERE / "unfit_workers.py"
    return results([sys.executable, script], cwd=folder, environ=environment(PYSPARK_PYTHON=str(bare)))


@pytest.mark.parametrize("call", ["match", "live"])
def test_it_is_said_when_a_query_meets_the_session(call: str, there: dict[str, Any], bare: Path) -> None:
    assert there[call]["type"] == "WorkersWithoutKleene"
    assert there[call]["text"].startswith(
        f"error[KL711]: Spark's tasks run {bare}, where Kleene cannot be used: it lacks "
    )
    assert all(
        name in there[call]["text"] for name in ("numba", "PYSPARK_PYTHON", "spark.pyspark.python", "kleene archive")
    )
    assert len(there[call]["text"].splitlines()) == 2


@pytest.mark.parametrize("way", ["run", "run in tasks"])
def test_the_command_prints_the_error_alone(way: str, there: dict[str, Any], bare: Path) -> None:
    assert there[way]["code"] == 1
    lines = [line for line in there[way]["text"].splitlines() if not line.startswith("after ")]
    assert lines[0].startswith(f"error[KL711]: Spark's tasks run {bare}, ")
    assert lines[1].startswith("  = hint: name a Python that has Kleene")
    assert len(lines) == 2


@pytest.mark.parametrize("way", ["tasks", "stream"])
def test_tasks_say_it_themselves(way: str, there: dict[str, Any], bare: Path) -> None:
    """What Spark quotes ends in our sentence: no module is missed in another one's traceback."""
    text = there[way]["text"]
    assert f"RuntimeError: error[KL711]: Spark's tasks run {bare}, where Kleene cannot be used: No module named" in text
    assert "ModuleNotFoundError" not in text
    assert there[way]["type"] == ("PythonException" if way == "tasks" else "StreamingQueryException")


def test_what_is_wrong_with_a_python(bare: Path) -> None:
    assert unfitness(sys.executable, "") is None
    assert unfitness(str(bare), "") == "it lacks kleene, lark, numba, numpy, pandas, pyarrow"
    with pytest.raises(WorkersWithoutKleene, match="does not run"):
        check_interpreter(str(bare.with_name("no-python")))
