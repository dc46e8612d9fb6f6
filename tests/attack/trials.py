"""Runs an attack many times, with inputs that Hypothesis draws and makes small."""

import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

# An attack draws an input, uses it, and returns what came of it, such as "refused";
# whatever it raises is a failure.
Attack = Callable[[st.DataObject], str]


@dataclass
class Outcome:
    """What came of the trials of an attack."""

    trials: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    failure: str = ""


def run(attack: Attack, trials: int, number: int = 0) -> Outcome:
    """Tries an attack until it succeeds, or has failed as often as asked for."""
    found = Outcome()

    @seed(number)
    @settings(
        max_examples=trials,
        deadline=None,
        database=None,
        phases=(Phase.generate,),  # making a failure small may take far longer
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def each(data: st.DataObject) -> None:
        found.trials += 1
        found.outcomes[attack(data)] += 1

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            each()
        except Exception as error:
            several = getattr(error, "exceptions", [error])
            found.failure = "\n".join(map(_text, several))
    return found


def _text(error: Exception) -> str:
    notes = "; ".join(getattr(error, "__notes__", []))
    return f"{type(error).__name__}: {error} ({notes})"
