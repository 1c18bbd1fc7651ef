"""A session for reading elsewhere: as JSON lines, Markdown or one HTML page, and its timeline. Changes nothing."""
