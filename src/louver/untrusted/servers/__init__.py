"""What a third party runs: services that hold no key."""
