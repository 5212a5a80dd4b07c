"""The service that runs the scripts of `tool_script`: it holds nothing and reaches nothing.

A script passes four rooms. `dialect` says whether it may be said at all, `lowering` turns it into a
program of the engine with its limits built in, `engine` keeps interpreters ready and runs one program
in one of them, and `bridge` carries what the program asks to the orchestrator and back. `fence` is
the wall round each interpreter.
"""
