"""What is simulated, as plain data: arenas, robots, disturbances, scenarios."""
