"""Tables in and out: kinds of events, files, columns and their types, results built by row number. Arrow in between."""
