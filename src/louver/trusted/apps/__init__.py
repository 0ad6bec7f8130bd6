"""Programs for people: the command line. The only rooms that print."""
