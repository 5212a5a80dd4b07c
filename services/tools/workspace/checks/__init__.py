"""Looking for faults in what was just written, in languages that can be checked (PIP-080)."""
