"""The subcommands of ``crew``, one module each."""
