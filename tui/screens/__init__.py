"""Screens, each with its style sheet beside it: the main one and the dialogs that are laid over it."""
