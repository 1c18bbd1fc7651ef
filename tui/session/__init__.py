"""What the screen knows of a session: a feed reads it from the database, and plain classes hold it."""
