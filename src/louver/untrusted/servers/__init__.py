"""Services run by third parties; they have no key."""
