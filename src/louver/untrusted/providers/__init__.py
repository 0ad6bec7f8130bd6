"""What a provider of public data computes for clients whose secrets it does not learn."""
