"""Checks of the project that need more than starting a tool."""
