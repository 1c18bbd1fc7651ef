"""Widgets, one a file: they show what they are given and post what a person wants; none knows the database."""
