"""What an adversary can do with the state of a server: the attacks that broke `sdb`, in the open.

Nothing here holds a key or imports trusted code. docs/attacks.md explains the mathematics.
"""
