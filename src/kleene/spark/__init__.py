"""Kleene on Spark. Importing this package must not import pyspark: the command and `kleene doctor` run without it."""
