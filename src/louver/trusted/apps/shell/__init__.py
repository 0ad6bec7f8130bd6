"""The shell of `louver sql`: reading, completing, remembering and printing statements."""
