"""Plans statements. Sees SQL, literals and the catalog; never a key."""
