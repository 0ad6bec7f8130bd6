"""Tests of the benchmarks: that a section runs, and that its checks can fail."""
