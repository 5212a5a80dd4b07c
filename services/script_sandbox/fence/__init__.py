"""The wall round one interpreter.

`launch` runs in a fresh Python (`python -I -S -B`) that turns itself into the interpreter, so it and
what it imports use the standard library alone: every import is paid once per worker.
"""
