"""Many standing queries at once: templates as shapes, queries as rows of constants, one pass over events."""
