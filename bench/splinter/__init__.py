"""Figures 6, 7 and 9 to 13 of Splinter: private questions beside the paper, fss-rs and DuckDB."""
