"""One swarm and one disturbance: evaluations, learners at work, and what came of it."""
