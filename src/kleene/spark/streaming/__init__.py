"""Queries over Spark streams: events wait for the watermark, state is kept by Spark, matches leave when certain."""
