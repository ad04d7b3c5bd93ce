"""Pipeline files: sources, queries and sinks in TOML, checked, run on Spark. Importing this imports no pyspark."""
