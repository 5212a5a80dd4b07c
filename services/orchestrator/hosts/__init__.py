"""Where tools run: services behind gRPC, and the orchestrator's own in process."""
