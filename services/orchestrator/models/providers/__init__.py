"""The providers: who can be asked for a reply, and how."""
