"""Lakes as whoever holds no key sees them: files, snapshots, indexes to be swept by token."""
