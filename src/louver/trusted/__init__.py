"""What runs on your machine: the only part of Louver that sees plaintext or keys."""
