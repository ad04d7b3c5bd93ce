"""From rows to events: settled, in order, numbered, as arrays."""
