"""The settings of training, declared once."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from kblrn_pyg.settings import setting, settle

OPTIMIZERS = ("adam", "adagrad")


@dataclass(frozen=True)
class FitSettings:
    """The settings of :meth:`fit`, with the defaults of the paper."""

    epochs: int = setting(100, "the maximum number of epochs")
    batch_size: int = setting(
        512, "the number of triples in a batch, or of queries if negatives are all"
    )
    optimizer: str = setting(
        "adam",
        "the optimiser: adam, or adagrad, which supports row-sparse gradients",
        choices=OPTIMIZERS,
    )
    lr: float = setting(0.001, "the learning rate")
    lr_decay: float = setting(1.0, "the factor of the learning rate after each epoch")
    feature_lr: float | None = setting(
        None, "the learning rate of all experts except the latent one, if it differs"
    )
    validate_every: int = setting(5, "the number of epochs between validations")
    patience: int = setting(
        0, "the number of consecutive validations without a better MRR to tolerate"
    )
    seed: int = setting(0, "the seed of all random numbers")

    def __post_init__(self) -> None:
        settle(self)
        for name in ("epochs", "patience", "seed"):
            if (number := getattr(self, name)) < 0:
                raise ValueError(f"'{name}' must not be negative (got {number})")
        if self.optimizer not in OPTIMIZERS:
            raise ValueError(
                f"'optimizer' must be one of {', '.join(OPTIMIZERS)} (got "
                f"{self.optimizer!r})"
            )
        for name in ("batch_size", "lr", "lr_decay", "feature_lr", "validate_every"):
            number = getattr(self, name)
            if number is not None and not number > 0:
                raise ValueError(f"'{name}' must be positive (got {number})")

    def changed(self, changes: Mapping[str, Any]) -> "FitSettings":
        r"""Returns a copy with some settings changed.

        Args:
            changes (dict): The values that differ, by name.
        """
        names = [field.name for field in fields(self)]
        for name in changes:
            if name not in names:
                raise TypeError(
                    f"fit() got an unexpected keyword argument {name!r}, expected one "
                    f"of {', '.join(names)}"
                )
        return replace(self, **changes)

    def validates(self, epoch: int) -> bool:
        """Returns whether an epoch ends with a validation."""
        return self.is_scheduled(epoch) or epoch == self.epochs

    def is_scheduled(self, epoch: int) -> bool:
        """Returns whether training for more epochs would validate here, too."""
        return epoch % self.validate_every == 0
