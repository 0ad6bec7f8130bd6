"""The only code that uses keys. It opens no sockets and reads no SQL text of queries."""
