"""How patterns become trees of joins (ZStream §5): expanded, rewritten, divided into parts, built."""
