"""The stream algebra on the engine: event automata over batches of Arrow data."""
