"""`kleene warm`: what it says, once and again, and where nothing can be kept."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

# The list of what is compiled is empty here; that it is complete is shown in tests/users/test_first_answer.py.
PROGRAM = """
import sys
from kleene.cli import main
from kleene.engine import warm, warming
warm.WARMINGS = ()
warming._PROGRAM = "pass # {0} {1}"
sys.argv = ["kleene", "warm"]
sys.exit(main())
"""


def kleene_warm(cache: Path) -> tuple[int, str, str]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "HOME": str(cache), "XDG_CACHE_HOME": str(cache)}
    environment["KLEENE_SHIPPED"] = "0"
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
def test_it_says_where_kernels_are_kept_and_does_it_once(tmp_path: Path) -> None:
    code, out, err = kleene_warm(tmp_path)
    (folder,) = (path for path in tmp_path.iterdir() if path.name.startswith("kernels_"))
    # How long it takes is the machine's: a busy one needs a second for an empty list, too.
    said = re.fullmatch(r"compiled in \d+ s: kernels are kept in (.+)\n", out)
    assert said is not None, (code, out, err)
    assert (code, said[1]) == (0, str(folder)), err
    assert "Compiling the kernels, once" in err
    assert kleene_warm(tmp_path) == (0, f"already compiled: kernels are kept in {folder}\n", "")
