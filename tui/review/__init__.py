"""The page with an agent's changes, which a person reads and answers with notes."""
