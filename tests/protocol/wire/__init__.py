"""Tests of the wire: what it says, and that every document of it says the same."""
