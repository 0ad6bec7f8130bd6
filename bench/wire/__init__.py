"""The front door beside a direct connection, and beside a pooler where one is installed."""
