"""What a container deployment needs before its first service starts.

The compose file runs ``python -m services.cli.prepare`` once, as root with four capabilities and no
network: it gives fresh volumes to the users that work on them, makes the secrets, and stops the
start with one sentence where a folder or database volume would fail the services later.
"""
