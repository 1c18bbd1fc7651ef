"""Small parts without knowledge: widgets, dialogs and formats that know neither the session nor the database."""
