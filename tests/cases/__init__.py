"""Failures that users of other runtimes reported in public, as inputs with the right behaviour (`cases.json`)."""
