"""How the world is simulated: lanes of robots, compiled with Numba."""
