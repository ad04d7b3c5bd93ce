"""What runs the alternatives of a plan: one contract, and stacks, automaton and trees that keep to it."""
