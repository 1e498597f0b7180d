"""One module per library: how it does the work. Each is imported in its library's environment alone."""
