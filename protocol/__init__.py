"""The vocabulary and the rules of Onward: pure, without trio and without I/O."""
