"""The reference pages' tables, made from the code: tools, commands, settings, SQL, errors, the Python API, keys.

A page under docs/reference is written by hand, but for the parts between two marks; those are what a function here
returns. ``make docs`` writes them anew and tests/docs/test_reference.py fails when one differs.
"""
