"""How messages reach people and programs: one module for each kind of channel."""
