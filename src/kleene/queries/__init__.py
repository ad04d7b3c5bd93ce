"""Queries of either algebra, patterns and streams: from their texts, and several that run together."""
