"""The terminal UI: a client of the database like any other. It shows rows and calls verbs; it runs no agent."""
