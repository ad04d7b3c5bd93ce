"""The algorithms that the papers compare theirs with, as compiled loops: for benchmarks, never for the product."""
