"""Running the whole crew as processes of this machine."""
