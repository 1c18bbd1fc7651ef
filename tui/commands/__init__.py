"""Slash commands and other requests of a person: parsed, completed and carried out."""
