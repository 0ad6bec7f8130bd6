"""Measurements of Louver against named peers; `python -m bench` runs them."""
