"""Parse shell commands and judge them."""
