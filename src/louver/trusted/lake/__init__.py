"""Tables of a lake, as their owner sees them: signed snapshots of encrypted files."""
