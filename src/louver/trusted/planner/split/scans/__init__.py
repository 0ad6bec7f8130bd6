"""Reduced scans: what of a statement's conditions the server may apply before it sends rows."""
