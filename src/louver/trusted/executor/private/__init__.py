"""Private questions to public data: one session over several providers (Splinter)."""
