"""What an agent changed, to be read and answered with notes."""
