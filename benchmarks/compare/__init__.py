"""Onward beside other agent libraries, each installed into an environment of its own, all of them in turn."""
