"""Secrets stay out of what others can read: the arguments of processes, explanations, messages."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.spark.pipelines import changed, written

import kleene
from kleene.errors import BadParameter
from kleene.spark.settings_file import escaped, settings_in_file

SECRET, INNER, NAMELESS = "hunter22-in-conf", "hunter23-in-options", "hunter24-under-a-harmless-name"
MAIN = "from kleene.cli import main; main()"
CONF = f"""
[spark]
master = "local[1]"
[spark.conf]
"spark.hadoop.fs.s3a.secret.key" = "{SECRET}"
"spark.kleene.plain" = "{NAMELESS}"
"spark.sql.shuffle.partitions" = 1
"""


@pytest.mark.spark
def test_no_process_has_a_secret_among_its_arguments(tmp_path: Path) -> None:
    """Of all processes of the machine, from the start of the run to its end; nor do its own have it around them."""
    pytest.importorskip("pyspark")
    text = changed(('x = "long" }', f'x = "long" }}\noptions = {{ my_password = "{INNER}" }}'), added=CONF)
    written(tmp_path, text)
    seen, files = set(), set()
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", MAIN, "run", "pipeline.toml"], cwd=tmp_path, stderr=subprocess.PIPE, env=environment
    ) as run:
        while run.poll() is None:
            for process, what, content in processes():
                seen.add((process, what))
                for secret in (SECRET, INNER, NAMELESS):
                    assert secret.encode() not in content, (process, what)
                if b"pyspark-shell" in content and what == "cmdline":
                    files |= {"java" if b"java" in content else "starting"}
            for file in tmp_path.glob("kleene-spark-*.conf"):
                files.add(file.name)
                assert stat.S_IMODE(file.stat().st_mode) == 0o600
            time.sleep(0.05)
        assert run.stderr is not None
        assert run.returncode == 0, run.stderr.read().decode()
    assert "java" in files, "the test saw the JVM"
    assert any(name.startswith("kleene-spark-") for name in files), "and the file"
    assert not list(tmp_path.glob("kleene-spark-*"))
    assert pq.read_table(tmp_path / "out").num_rows == 2


def processes() -> Iterator[tuple[int, str, bytes]]:
    """The arguments of each process, and the environment of those that can be looked into."""
    for folder in Path("/proc").glob("[0-9]*"):
        for what in ("cmdline", "environ"):
            try:
                yield int(folder.name), what, (folder / what).read_bytes()
            except OSError:
                continue


ODD = "a=b:c #!\\ \t\n end \u20ac \U0001f600"
ARRIVES = """
import sys
from kleene.spark.session import local_session

session = local_session("local[1]", **{"spark.hadoop.my.password": sys.argv[1], "spark.my.token": "of a token"})
jvm = session.sparkContext._jvm
print(session.sparkContext._jsc.hadoopConfiguration().get("my.password") == sys.argv[1])
print(session.conf.get("spark.my.token"), session.conf.get("spark.driver.host"))
print(jvm.java.lang.System.getProperty("spark.my.token"))
print(session.sparkContext.getConf().get("spark.from.defaults"))
"""


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.parametrize("own_file", [False, True])
def test_settings_arrive(own_file: bool, tmp_path: Path) -> None:
    """In the session and in Hadoop's settings, beside the machine's defaults; also where a file is named already."""
    pytest.importorskip("pyspark")
    (tmp_path / "spark-defaults.conf").write_text("spark.from.defaults yes\n")
    environment = {**os.environ, "SPARK_CONF_DIR": str(tmp_path)}
    if own_file:
        environment["PYSPARK_SUBMIT_ARGS"] = f"--properties-file {tmp_path}/spark-defaults.conf pyspark-shell"
    ended = subprocess.run([sys.executable, "-c", ARRIVES, ODD], env=environment, capture_output=True, text=True)
    at_start = "None" if own_file else "of a token"
    assert ended.stdout.splitlines() == ["True", "of a token 127.0.0.1", at_start, "yes"], ended.stderr


def test_the_file_is_there_while_spark_starts_and_no_longer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--packages 'a b' pyspark-shell")
    with suppress(KeyboardInterrupt), settings_in_file({"spark.a": "b c", "spark.d e": "=f"}) as in_file:
        assert in_file
        (file,) = tmp_path.iterdir()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert file.read_text() == "spark.a=b\\ c\nspark.d\\ e=\\=f\n"
        assert os.environ["PYSPARK_SUBMIT_ARGS"] == (
            f"--load-spark-defaults --properties-file {file} --packages 'a b' pyspark-shell"
        )
        raise KeyboardInterrupt
    assert os.environ["PYSPARK_SUBMIT_ARGS"] == "--packages 'a b' pyspark-shell"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("text", "written"), [("plain", "plain"), ("a\nb", "a\\nb"), ("€", "\\u20ac"), ("\\", "\\\\")])
def test_what_java_would_misread_is_escaped(text: str, written: str) -> None:
    assert escaped(text) == written
    assert escaped("\U0001f600") == "\\ud83d\\ude00"


# Explanations --------------------------------------------------------------------------------------------------------

QUERY = "PATTERN SEQ(A a, B b) WHERE a.card = :api_key AND b.x IN :secret_codes AND b.y > -:pin_token AND b.x > :low"
VALUES = {"api_key": "hunter22", "secret_codes": [111_222, 333_444], "pin_token": 987_654, "low": 5}
ROWS = [{"type": "A", "ts": 1, "card": "hunter22"}, {"type": "B", "ts": 2, "x": 111_222, "y": 1, "card": "none"}]


def test_explain_shows_the_name_of_a_secret_parameter() -> None:
    query = kleene.query(f"{QUERY} WITHIN 10", params=VALUES)
    plain, analyzed = kleene.explain(query, events=ROWS), kleene.explain(query, events=ROWS, analyze=True)
    for text in (str(plain), plain.mermaid, str(analyzed), str(kleene.why(ROWS, query))):
        for value in ("hunter22", "111222", "333444", "987654"):
            assert value not in text
    assert "a.card = :api_key" in str(plain)
    assert "b.x > 5" in str(plain)
    assert len(kleene.match(ROWS, query)) == 1


def test_an_error_does_not_show_it_either() -> None:
    with pytest.raises(BadParameter) as wrong:
        kleene.query("PATTERN A a ; B b WITHIN :secret", params={"secret": "hunter22"}).bind()
    assert "hunter22" not in str(wrong.value)


def test_a_dry_run_hides_parameters(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    from kleene.spark.pipeline.reading import read_pipeline

    condition = ("[x] WITHIN 10", "[x] AND a.type != :my_token WITHIN 10")
    text = changed(condition, ('WITHIN 10"\n', 'WITHIN 10"\nparams = { my_token = "hunter22" }\n'))
    pipeline = read_pipeline(written(tmp_path, text))
    assert pipeline.secrets == ["hunter22"]
    assert "hunter22" not in pipeline.sheet.text
    assert "a.type != :my_token" in str(kleene.explain(pipeline.queries[0]))
