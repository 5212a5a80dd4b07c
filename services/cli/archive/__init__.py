"""Backups: one file with the database and the home (FLD-047)."""
