"""Rewrites of a pattern (ZStream §5.2.1): equivalent expressions with fewer or cheaper operators. One rule a file."""
