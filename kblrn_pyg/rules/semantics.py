"""The conditions under which a body holds."""

from dataclasses import asdict, dataclass

from kblrn_pyg.data import DataError
from kblrn_pyg.kernels.mining import Choices
from kblrn_pyg.settings import changed


@dataclass(frozen=True)
class Semantics:
    r"""The admissible rules :math:`r(h, t) \Leftarrow \textrm{body}(h, t)`, and the
    conditions under which their bodies hold. The defaults agree with AMIE.

    Args:
        equal_ends (bool, optional): Whether a body may hold for :math:`h = t`.
            (default: :obj:`True`)
        equal_middle (bool, optional): Whether the middle of a path may be
            :math:`h` or :math:`t`. (default: :obj:`True`)
        self_loops (bool, optional): Whether bodies may use facts
            :math:`a(x, x)`. (default: :obj:`True`)
        head_in_body (bool, optional): Whether :math:`r` may occur in a body of
            :math:`r`. (default: :obj:`True`)

    Example:
        >>> print(Semantics(equal_middle=False))
        equal_middle=False
    """

    equal_ends: bool = True
    equal_middle: bool = True
    self_loops: bool = True
    head_in_body: bool = True

    @classmethod
    def parse(cls, text: str) -> "Semantics":
        r"""Reverses :class:`str`.

        Args:
            text (str): The differences from the defaults.
        """
        values = {}
        for word in filter(None, text.split(",")):
            name, _, value = word.strip().partition("=")
            if name not in cls.__dataclass_fields__ or value not in ("True", "False"):
                raise DataError(f"unknown semantics {word.strip()!r}")
            values[name] = value == "True"
        return cls(**values)

    @property
    def choices(self) -> Choices:
        """The arguments of kernels; self-loops are left out of their adjacency."""
        return Choices(self.equal_ends, self.equal_middle, self.head_in_body)

    def differences(self, other: "Semantics") -> list[str]:
        r"""Returns the names of the fields that differ.

        Args:
            other (Semantics): The other semantics.
        """
        theirs = asdict(other)
        return [name for name, value in asdict(self).items() if value != theirs[name]]

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in changed(self).items())


AMIE = Semantics()
