"""Parquet files that tasks read themselves, where the events are known to be exactly what these hold."""
