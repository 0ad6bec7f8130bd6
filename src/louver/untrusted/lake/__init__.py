"""Lakes without keys: files, snapshots, and indexes that are searched with tokens."""
