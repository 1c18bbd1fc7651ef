"""Talks to model servers; the port is what the engine knows. Only this package knows openai."""
