"""The reference evaluator, case files and generators: what other executors are tested against. Public."""

from kleene.reference.evaluator import Result, reference_match, reference_results
from kleene.reference.limits import Limits
from kleene.reference.matches import Match
from kleene.testing.case_check import check_case
from kleene.testing.case_reference import run_on_reference
from kleene.testing.cases import read_case_file
from kleene.testing.reference_streams import reference_stream

__all__ = [
    "Limits",
    "Match",
    "Result",
    "check_case",
    "read_case_file",
    "reference_match",
    "reference_results",
    "reference_stream",
    "run_on_reference",
]
