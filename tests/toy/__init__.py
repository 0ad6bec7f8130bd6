"""What is added to Louver by tests alone: nothing in src/ knows of it."""
