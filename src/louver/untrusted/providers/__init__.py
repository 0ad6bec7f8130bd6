"""The computations of a provider of public data, for clients whose secrets it does not learn."""
