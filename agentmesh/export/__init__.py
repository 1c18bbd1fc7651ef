"""A session for reading elsewhere: as JSON lines, Markdown or one HTML page, and its time line. Changes nothing."""
