"""Model providers: routes, streams, prices. Usable by itself, with no turn or host (PIP-119)."""
