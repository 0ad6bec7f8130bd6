"""Programs that the Makefile calls: parts of building and checking, not of the product."""
