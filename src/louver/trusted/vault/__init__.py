"""The only code that touches keys. No sockets, and no SQL text of queries."""
