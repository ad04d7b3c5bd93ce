"""Executors of the alternatives of a plan: one contract, implemented by stacks, automaton and trees."""
