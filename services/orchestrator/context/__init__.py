"""What the model is told: the system prompt and the messages of the conversation."""
