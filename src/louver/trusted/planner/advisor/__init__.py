"""Recommends ceilings, join groups and generated columns for a workload."""
