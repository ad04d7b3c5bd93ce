"""docs/spark.md: what it says of a cluster. Its examples run in `tests/users`, on a session with nothing set."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "spark.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)\n```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_settings_of_a_cluster_are_those_of_the_page() -> None:
    from kleene.spark.shipping import executor_options

    shell = next(text for kind, text in BLOCKS if kind == "bash")
    options = executor_options(Path("kleene.tar.gz"))
    assert f"--archives {options.pop('spark.archives')}" in shell
    assert all(f"--conf {name}={value}" in shell for name, value in options.items())
