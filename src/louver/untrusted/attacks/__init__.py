"""Attacks with the state of a server, including those that broke `sdb`, published.

Nothing here has a key or imports trusted code. docs/attacks.md explains the mathematics.
"""
