"""The planner, without keys and without a server."""
