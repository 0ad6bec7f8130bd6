"""What runs, or may run, where the adversary reads along. Imports nothing of `louver.trusted`."""
