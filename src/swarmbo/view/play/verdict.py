"""Whether a learner has made a swarm better: a sentence with the numbers on which it rests."""

from dataclasses import dataclass

import numpy as np

CLEAR = 2.0  # standard errors from which a difference is called one


@dataclass(frozen=True, eq=False)
class Evidence:
    """What rounds have shown: the items that a robot delivers in each trial, and from how many."""

    items: np.ndarray  # per robot, mean over the rounds, one number per trial
    last: np.ndarray  # the same in the last round
    rounds: int = 1

    @classmethod
    def of(cls, items: np.ndarray) -> "Evidence":
        """What one round shows: its items, trials x robots."""
        return cls(items.mean(axis=1), items.mean(axis=1))

    def and_then(self, items: np.ndarray) -> "Evidence":
        """The same with one more round, unless it only repeats the last one.

        Robots that are put back run every round with the same noise: then each
        round is the same again, and shows nothing new.
        """
        new = items.mean(axis=1)
        if (new == self.last).all():
            return self
        rounds = self.rounds + 1
        return Evidence(self.items + (new - self.items) / rounds, new, rounds)

    @property
    def mean(self) -> float:
        """Items per robot in a round."""
        return float(self.items.mean())

    @property
    def error(self) -> float:
        """The standard error of the mean over the trials; nan when there is one trial only."""
        trials = len(self.items)
        return float(self.items.std(ddof=1)) / trials**0.5 if trials > 1 else float("nan")

    def __str__(self) -> str:
        spread = "" if np.isnan(self.error) else f" ± {self.error:.2f}"
        rounds = "1 round" if self.rounds == 1 else f"{self.rounds:,} rounds"
        return f"{self.mean:.2f}{spread} in {rounds}"


def verdict(
    name: str, before: Evidence, at_fault: Evidence | None, now: Evidence | None, done: int
) -> str:
    """What a learner has brought, after so many evaluations; without `now` nothing is known yet."""
    evaluations = "1 evaluation" if done == 1 else f"{done} evaluations"
    if now is None:
        return f"{name} has ended after {evaluations}; this round tells whether the swarm is better"
    base = before if at_fault is None else at_fault
    gain = now.mean - base.mean
    noise = CLEAR * float(np.hypot(now.error, base.error))
    what = "not clearly better or worse than"  # also when the noise is not known
    if abs(gain) > noise:
        what = "better than" if gain > 0 else "worse than"
    when = "before, when nothing was broken" if at_fault is None else "at the fault"
    levels = f"now {now}, before {before}"
    if at_fault is not None:
        levels = f"now {now}, at the fault {at_fault}, before it {before}"
    trials = len(now.items)
    return (
        f"{name} has ended after {evaluations}, and the swarm is {what} {when}: items per robot "
        f"{levels} (± standard error over {trials} trials)"
    )
