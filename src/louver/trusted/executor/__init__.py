"""What happens when a statement runs: order of steps, row ids, the leakage ledger."""
