"""Runs tree plans (ZStream §4): buffers of records, operators that join them, rounds."""
