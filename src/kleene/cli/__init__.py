"""The `kleene` command. Importing this package imports nothing else; a command imports what it needs."""

from __future__ import annotations


def main() -> None:
    """The entry point of the `kleene` command."""
    import sys

    from kleene.cli.running import run

    sys.exit(run(sys.argv[1:]))
