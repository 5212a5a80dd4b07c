"""Runs turns: the gate, the loop, the models, the store. Alone holds the database and the keys."""
