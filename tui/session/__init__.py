"""The screen's knowledge of a session: a feed reads it from the database, and plain classes hold it."""
