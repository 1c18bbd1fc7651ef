"""Take shell commands apart and judge them."""
