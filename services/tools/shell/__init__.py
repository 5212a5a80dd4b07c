"""`shell_run`: commands of an agent, their pattern lists, their limits and their sandbox."""
