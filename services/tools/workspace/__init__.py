"""Files of a workspace: listing, reading, writing, editing and searching them.

Imports nothing: the programs started from here pay for it each time.
"""
