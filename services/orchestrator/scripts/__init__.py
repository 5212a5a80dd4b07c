"""Scripts: `tool_script`, what a script may ask of the orchestrator, and what it keeps (script.md).

The sandbox that runs a script is taken for hostile: what it sends are requests to be judged, and no
number of it decides anything.
"""
