"""From what executors complete to what a query gives."""
