"""Adaptation: learners that try controllers of a map and keep the best."""
