"""The two-worlds test: what crosses must not depend on what is encrypted.

Two databases and two texts differ only in values of ENC columns, in the literals compared with
them, and in the names of ENC columns. How the values of one world correspond to those of the other
depends on the ceiling (`values`): whatever the ledger may state is the same in both. Then every
statement must make everything that crosses the same but for the bytes of ciphertext (`crossing`).
"""
