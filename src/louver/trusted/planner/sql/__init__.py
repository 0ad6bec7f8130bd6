"""SQL as text and as trees: tokens, names, types, values."""
