"""Queries that run together: one graph of them, and one run of it, whole, piece by piece or as a stream goes on."""
