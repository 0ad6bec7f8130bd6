"""The demonstrations of `louver demo`."""
