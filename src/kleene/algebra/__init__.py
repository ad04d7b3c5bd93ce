"""The stream algebra (CESAR §2): interned nodes, the schema of each, binding, and the printed form."""
