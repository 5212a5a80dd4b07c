"""Budgets of the crew, and model calls outside the turn loop that are paid from them."""
