"""How patterns become trees of joins (ZStream §5): expanded, rewritten, given a shape, built."""
