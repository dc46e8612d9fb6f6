"""How fast and how long to learn."""

from dataclasses import dataclass
from typing import Any

from kblrn_pyg.training.trainable import Trainable


@dataclass(frozen=True)
class Plan:
    """The numbers that :meth:`fit` takes, which says what they mean."""

    epochs: int
    batch_size: int
    lr: float
    lr_decay: float
    feature_lr: float | None
    validate_every: int
    patience: int
    seed: int

    def __post_init__(self) -> None:
        for name in ("epochs", "patience", "seed"):
            if (number := getattr(self, name)) < 0:
                raise ValueError(f"'{name}' must not be negative (got {number})")
        for name in ("batch_size", "lr", "lr_decay", "feature_lr", "validate_every"):
            number = getattr(self, name)
            if number is not None and not number > 0:
                raise ValueError(f"'{name}' must be positive (got {number})")

    def validates(self, epoch: int) -> bool:
        """Tells whether an epoch ends with a validation."""
        return self.is_scheduled(epoch) or epoch == self.epochs

    def is_scheduled(self, epoch: int) -> bool:
        """Tells whether a training of more epochs would validate here, too."""
        return epoch % self.validate_every == 0

    def parameter_groups(self, model: Trainable) -> list[dict[str, Any]]:
        """Returns the parameters of a model with their learning rates."""
        parameters = list(model.parameters())
        if self.feature_lr is None:
            return [{"params": parameters, "lr": self.lr}]
        features = model.feature_parameters()
        is_feature = {id(one) for one in features}
        others = [one for one in parameters if id(one) not in is_feature]
        groups = (others, self.lr), (features, self.feature_lr)
        return [{"params": params, "lr": lr} for params, lr in groups if params]
