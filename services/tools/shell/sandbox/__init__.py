"""The operating system's walls round a command: bubblewrap, or Landlock with a system-call filter."""
