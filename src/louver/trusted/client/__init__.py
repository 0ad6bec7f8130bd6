"""What a program that uses Louver calls: connect, connections, relations, results."""
