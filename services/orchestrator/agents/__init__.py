"""Who is in the crew: agents read from the text files of the home (agents.md)."""
