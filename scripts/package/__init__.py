"""Builds, looks into and tries what is released: ``make package``."""
