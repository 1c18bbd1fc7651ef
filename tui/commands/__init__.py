"""What a person asks for: slash commands and their arguments, understood, completed and carried out."""
