"""From a checked script to a program of the engine with the script's limits built in.

The engine runs more than the language allows, and less strictly. The tree that was checked is
rewritten so that what the engine would let pass is measured by functions of the prelude
(`engine/prelude.monty`), and is written out anew: the engine never reads the text of a script.
"""

from services.script_sandbox.lowering.program import Program, lower

__all__ = ["Program", "lower"]
