"""Runs a plan over Arrow tables. Importing this package imports no compiler; running a plan does."""
