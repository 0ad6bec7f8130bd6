"""Short statements and transactions: what one row costs to read and to write."""
