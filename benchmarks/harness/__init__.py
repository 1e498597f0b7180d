"""What the benchmarks share: how to measure, what to compare with, and the subject."""
