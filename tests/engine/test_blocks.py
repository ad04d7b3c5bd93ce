"""Blocks of memory that arrays are lent: kept and used again, within a limit, whoever frees them."""

from __future__ import annotations

import os
import threading
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

from kleene.engine.state import memory
from kleene.engine.state.blocks import Blocks, Loan, memory_of_the_machine

MEGABYTE = 1 << 20


def address(loan: Loan) -> int:
    return int(loan.ctypes.data)


def test_a_block_serves_again_when_nobody_refers_to_it() -> None:
    blocks = Blocks(8 * MEGABYTE)
    loan = blocks.lend(MEGABYTE)
    place = address(loan)
    view = np.ndarray(100, np.int64, buffer=loan)[10:20]
    column = pa.Array.from_buffers(pa.int64(), 10, [None, pa.py_buffer(view)])
    del loan, view
    assert blocks.kept_bytes == 0, "a column refers to it"
    other = blocks.lend(MEGABYTE)
    assert address(other) != place
    del column
    assert blocks.kept_bytes >= MEGABYTE
    assert address(blocks.lend(MEGABYTE - 5)) == place


def test_what_is_written_stays_while_it_is_lent() -> None:
    blocks = Blocks(64 * MEGABYTE)
    held = []
    for number in range(50):
        loan = blocks.lend(MEGABYTE + number * 4096)
        loan[:] = number
        if number % 3:
            held.append((number, loan))
    for number, loan in held:
        assert len(loan) >= MEGABYTE + number * 4096
        assert (loan == number).all()


def test_a_block_serves_only_what_needs_most_of_it() -> None:
    blocks = Blocks(64 * MEGABYTE)
    large = address(blocks.lend(16 * MEGABYTE))
    small = blocks.lend(MEGABYTE)
    assert len(small) < 2 * MEGABYTE
    assert address(blocks.lend(15 * MEGABYTE)) == large


@pytest.mark.parametrize("size", [1, 4096, 4097, MEGABYTE + 1, 3 * MEGABYTE - 1, 100 * MEGABYTE + 7])
def test_a_block_is_large_enough_and_at_most_a_quarter_larger(size: int) -> None:
    assert size <= len(Blocks(0).lend(size)) <= max(1.25 * size, 8192)


def test_no_more_is_kept_than_allowed() -> None:
    blocks = Blocks(10 * MEGABYTE)
    loans = [blocks.lend((1 + number) * MEGABYTE) for number in range(6)]
    last = address(loans[-1])
    while loans:
        loans.pop(0)
        assert blocks.kept_bytes <= 10 * MEGABYTE
    assert address(blocks.lend(6 * MEGABYTE)) == last, "those kept longest go first"
    del loans
    blocks.lend(11 * MEGABYTE)
    assert blocks.kept_bytes <= 10 * MEGABYTE
    blocks.keep_at_most(MEGABYTE)
    assert blocks.kept_bytes <= MEGABYTE
    blocks.let_go()
    assert blocks.kept_bytes == 0


def test_a_block_may_come_back_while_the_lock_is_held() -> None:
    """Garbage may be collected in the middle of lending, in the thread that holds the lock."""
    blocks = Blocks(8 * MEGABYTE)
    loan = blocks.lend(MEGABYTE)
    with blocks._lock:
        del loan
        assert blocks.kept_bytes == 0
    blocks.lend(4096)
    assert blocks.kept_bytes >= MEGABYTE


def test_threads_never_share_a_block() -> None:
    blocks, wrong = Blocks(32 * MEGABYTE), []

    def work(number: int) -> None:
        draw = np.random.default_rng(number)
        for size in draw.integers(1, 2 * MEGABYTE, 200).tolist():
            loan = blocks.lend(size)
            loan[:size] = number
            if not (loan[:size] == number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert 0 < blocks.kept_bytes <= 32 * MEGABYTE


def test_large_arrays_are_lent_and_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_BLOCKS", Blocks(64 * MEGABYTE))
    array = memory.empty((2, MEGABYTE), np.int64)
    array[:] = 7
    assert array.shape == (2, MEGABYTE)
    assert isinstance(array.base, Loan)
    assert memory._BLOCKS.kept_bytes == 0
    del array
    assert memory._BLOCKS.kept_bytes >= 16 * MEGABYTE
    memory.give_back()
    assert memory._BLOCKS.kept_bytes == 0
    assert not isinstance(memory.empty(1000, np.int64).base, Loan)


def test_a_process_of_many_keeps_its_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(memory.VARIABLE, raising=False)
    whole = memory_of_the_machine() // 4
    assert memory.most_kept() == whole
    with mock.patch.object(memory, "_BLOCKS", Blocks(whole)) as blocks:
        memory.one_of(4)
        assert blocks._most == whole // 4
    assert memory_of_the_machine() > 1 << 28
    with mock.patch.object(os, "sysconf", side_effect=ValueError):
        assert memory_of_the_machine() == 1 << 30
    for said, bytes_ in (("100", 100 << 20), ("0", 0), ("", whole), ("much", whole)):
        monkeypatch.setenv(memory.VARIABLE, said)
        assert memory.most_kept() == bytes_


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_has_blocks_of_its_own() -> None:
    blocks = Blocks(8 * MEGABYTE)
    kept = blocks.lend(MEGABYTE)
    kept[:] = 1
    place = address(kept)
    del kept
    # Another thread may be lending at that moment.
    blocks._lock.acquire()
    child = os.fork()
    if child == 0:
        blocks.unlock()
        loan = blocks.lend(MEGABYTE)
        loan[:] = 2
        os._exit(0 if address(loan) == place and (loan == 2).all() else 1)
    blocks._lock.release()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    loan = blocks.lend(MEGABYTE)
    assert not (loan == 2).any()
