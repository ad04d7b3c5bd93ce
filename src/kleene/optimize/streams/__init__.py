"""The normal form of unary operations on streams (CESAR §3.4, Theorem 3): `π ∘ α ∘ ρ ∘ σ`, one rule a file."""
