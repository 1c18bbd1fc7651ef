"""The conversation of one agent: rows as entries, and the widgets that show and scroll them."""
