"""The command line. Data goes to stdout, talk to stderr; how things look is in ``render``."""
