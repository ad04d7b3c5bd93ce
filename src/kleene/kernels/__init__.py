"""Compiled loops over flat arrays. Importing this package compiles nothing and imports no compiler."""
