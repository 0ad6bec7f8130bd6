"""Lake tables on the trusted side: signed snapshots of encrypted files."""
