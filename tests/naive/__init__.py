"""The slow, obvious simulator in plain Python that the engine is compared with."""

from tests.naive.scores import Scores
from tests.naive.swarm import NaiveSwarm, Uniform

__all__ = ["NaiveSwarm", "Scores", "Uniform"]
