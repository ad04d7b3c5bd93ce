"""Queries in EQL over batches of events: one operator a node, each of which takes in and gives whole arrays."""
