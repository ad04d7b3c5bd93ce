"""The footer of a Parquet file: where its pages are, how long, and their least and greatest values.

So its digest tells whether a file is still the one that was listed.
"""

from __future__ import annotations

from hashlib import blake2b

# How long the footer is, and the four letters that end every file.
_END = 8


def footer_of(path: str) -> bytes:
    with open(path, "rb") as file:
        end = file.seek(0, 2)
        file.seek(max(end - _END, 0))
        size = int.from_bytes(file.read(_END)[:4], "little")
        file.seek(max(end - _END - size, 0))
        return file.read()


def digest_of(footer: bytes) -> str:
    return blake2b(footer, digest_size=16).hexdigest()
