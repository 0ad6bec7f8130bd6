"""The messages between the trusted client and untrusted machines; nothing else crosses."""
