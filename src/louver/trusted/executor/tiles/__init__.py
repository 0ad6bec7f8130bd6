"""Tiles of tables behind a server's SQL (spec/tile.md): written by loads, read for rows in them."""
