"""Random queries with random streams, by stratum: each stratum is one rule of the semantics page, mixed with others.

`random_case(Random(7), "negation")` is quick and repeatable; `cases("negation")` is the same for hypothesis. Queries
are valid, streams have at most eight events of few types and small domains, and windows are of the streams' length.
"""

from kleene.testing.generators.cases import GeneratedCase, cases, random_case, schema_of
from kleene.testing.generators.strata import STRATA, Stratum

__all__ = ["STRATA", "GeneratedCase", "Stratum", "cases", "random_case", "schema_of"]
