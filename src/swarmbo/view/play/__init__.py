"""`swarmbo play`: a page on which a swarm can be broken and watched while it recovers."""
