"""Measures of a stream for Prometheus: its text format, and a small server on this machine's loopback."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from kleene.spark.pipeline.measures import BatchMeasures, Totals

_LOOPBACK = "127.0.0.1"
_CONTENT = "text/plain; version=0.0.4; charset=utf-8"


def exposition(totals: Totals, last: BatchMeasures | None) -> str:
    """Everything that is measured, as text."""
    return "".join(_lines(totals, last))


def _lines(totals: Totals, last: BatchMeasures | None) -> Iterator[str]:
    yield from _metric("batches_total", "counter", "Batches that are done.", totals.batches)
    yield from _metric("rows_total", "counter", "Rows that the sources gave.", totals.rows)
    yield from _metric("events_total", "counter", "Events that engines were given.", totals.done["events"])
    for kind, words in (("matches", "Matches"), ("timeouts", "Runs that timed out")):
        yield from _metric(f"{kind}_total", "counter", f"{words}, by query.", totals.of(kind))
    yield from _metric("late_total", "counter", "Events that came after the watermark.", totals.late)
    yield from _metric("bad_rows_total", "counter", "Rows that are no events.", totals.bad_rows)
    yield from _metric("duplicates_total", "counter", "Events that were dropped as known.", totals.done["duplicates"])
    yield from _metric("dropped_total", "counter", "Matches and runs over a budget.", totals.done["dropped"])
    changes = totals.done["plan_changes"]
    yield from _metric("plan_changes_total", "counter", "Times that a slot went on with a better plan.", changes)
    sizes = totals.held
    yield from _metric("held_events", "gauge", "Events that are kept for open windows.", sizes["held"])
    yield from _metric("runs", "gauge", "Open runs.", sizes["runs"])
    yield from _metric("state_bytes", "gauge", "What engines hold in memory.", sizes["state_bytes"])
    yield from _metric("kept_bytes", "gauge", "What is kept in the state store.", sizes["kept_bytes"])
    if last is not None:
        yield from _of_last(last)


def _of_last(last: BatchMeasures) -> Iterator[str]:
    yield from _metric("batch_seconds", "gauge", "How long the last batch took.", last.seconds)
    yield from _metric("rows_per_second", "gauge", "Rows a second in the last batch.", last.rate)
    if last.watermark_seconds is not None:
        yield from _metric("watermark_seconds", "gauge", "The watermark, in seconds.", last.watermark_seconds)
    elif last.watermark is not None:
        yield from _metric("watermark_ticks", "gauge", "The watermark, in ticks.", last.watermark)
    if last.lag is not None:
        yield from _metric("lag_seconds", "gauge", "How far the watermark is behind the clock.", last.lag)


def _metric(name: str, kind: str, help_text: str, value: float | Mapping[str, int]) -> Iterator[str]:
    name = f"kleene_{name}"
    yield f"# HELP {name} {help_text}\n# TYPE {name} {kind}\n"
    if not isinstance(value, Mapping):
        yield f"{name} {value}\n"
        return
    for query, number in value.items():
        yield f'{name}{{query="{_escaped(query)}"}} {number}\n'


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


@contextmanager
def served(port: int, text: Callable[[], str]) -> Iterator[str]:
    """Serve the text under `/metrics` until the end; the address. Port 0 is any that is free."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.split("?")[0] != "/metrics":
                self.send_error(404)
                return
            body = text().encode()
            self.send_response(200)
            self.send_header("Content-Type", _CONTENT)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Requests are not logged."""

    server = ThreadingHTTPServer((_LOOPBACK, port), Answer)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://{_LOOPBACK}:{server.server_address[1]}/metrics"
    finally:
        server.shutdown()
        server.server_close()
