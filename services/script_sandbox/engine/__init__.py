"""Interpreters kept ready behind the fence, and one program running in one of them."""
