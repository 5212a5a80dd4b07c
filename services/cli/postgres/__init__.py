"""Postgres on a bare machine: its programs from the wheel, one cluster in the home, two roles."""
