"""From a message to the end of its turn: the gate, the loop, decisions, stops and recovery."""
