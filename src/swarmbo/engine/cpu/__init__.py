"""The engine on the CPU: loops over lanes."""
