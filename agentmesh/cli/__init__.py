"""The command line. Data goes to stdout, messages to stderr; ``render`` has the layout."""
