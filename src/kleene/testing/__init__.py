"""The reference evaluator, case files and generators: what other executors are tested against. Public."""

from kleene.testing.limits import Limits
from kleene.testing.matches import Match
from kleene.testing.reference import Result, reference_match, reference_results

__all__ = ["Limits", "Match", "Result", "reference_match", "reference_results"]
