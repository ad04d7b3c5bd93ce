"""The reference evaluator: what a query means, in plain Python, and what runs a query that no other executor can."""
