"""Tests of Onward; what they share is in `tests.support`."""
