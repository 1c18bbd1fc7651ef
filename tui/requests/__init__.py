"""What agents ask a person: which request comes next, its dialog, and the answers."""
