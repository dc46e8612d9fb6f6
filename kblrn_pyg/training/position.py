"""How far a training is."""

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Position:
    r"""How far a training is, down to the batch.

    Args:
        epoch (int, optional): The number of complete epochs.
            (default: :obj:`0`)
        batch (int, optional): The number of complete batches of the current
            epoch. (default: :obj:`0`)
        loss (float, optional): The sum of the losses of their triples.
            (default: :obj:`0.0`)
        triples (int, optional): The number of their triples.
            (default: :obj:`0`)
        seconds (float, optional): The time they took. (default: :obj:`0.0`)
        seconds_before (float, optional): The time of the complete epochs.
            (default: :obj:`0.0`)
    """

    epoch: int = 0
    batch: int = 0
    loss: float = 0.0
    triples: int = 0
    seconds: float = 0.0
    seconds_before: float = 0.0

    @property
    def mean_loss(self) -> float:
        """The mean loss of a triple in the current epoch."""
        return self.loss / self.triples

    @property
    def triples_per_second(self) -> float:
        """The speed of the current epoch."""
        return self.triples / max(self.seconds, 1e-9)

    def after_batch(self, loss: float, triples: int, seconds: float) -> "Position":
        r"""Returns the position one batch later.

        Args:
            loss (float): The mean loss of the batch.
            triples (int): The number of its triples.
            seconds (float): The time it took.
        """
        return replace(
            self,
            batch=self.batch + 1,
            loss=self.loss + loss * triples,
            triples=self.triples + triples,
            seconds=self.seconds + seconds,
        )

    def after_epoch(self) -> "Position":
        """Returns the position at the start of the next epoch."""
        seconds = self.seconds_before + self.seconds
        return Position(epoch=self.epoch + 1, seconds_before=seconds)

    def log_line(self) -> dict[str, Any]:
        """Returns the figures to log at the end of the current epoch."""
        return {
            "epoch": self.epoch + 1,
            "loss": self.mean_loss,
            "seconds": self.seconds_before + self.seconds,
            "triples_per_second": self.triples_per_second,
        }
