"""The cases that tell of a server: strict servers of each wire format, and what the cases let them say."""
