"""Studies of models: what each can learn, measured side by side."""
