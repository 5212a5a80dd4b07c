"""Workspaces on disk: the walls around them, and what is done within."""
