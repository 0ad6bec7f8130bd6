"""Private questions on public data: one session over several providers (Splinter)."""
