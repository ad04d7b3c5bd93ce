"""Many standing queries at once: their face, how they get in, and what they give."""

from kleene.query_set.face import QuerySet
from kleene.query_set.loading import Added
from kleene.query_set.outputs import SetOutputs

__all__ = ["Added", "QuerySet", "SetOutputs"]
