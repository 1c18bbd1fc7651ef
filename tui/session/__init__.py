"""What the screen knows of a session: read from the database by a feed, and held in plain classes."""
