"""Between a program and the orchestrator: what it asks, what it is answered, and where it stands.

What comes out of a worker is looked at here for the first time; nothing in it is believed before.
"""
