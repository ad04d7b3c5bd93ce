"""The second evaluator: enumerate every assignment of events to places and test the definition on each.

It shares nothing with the reference evaluator but the parser's syntax tree, so that a misreading of the semantics page
must be made twice to go unnoticed. It is meant for streams of at most eight events.
"""

from kleene.testing.brute.matching import Match, brute_force_counts, brute_force_match

__all__ = ["Match", "brute_force_counts", "brute_force_match"]
