"""What of a statement the server runs, and what is left for the local engine."""
