"""Statements in the form that the split knows: explicit columns, keys and conditions."""
