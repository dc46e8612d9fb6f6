"""Messages about what rules leave out."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


class _Once(logging.Filter):
    """Lets each message of this library about rules pass once."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if not record.name.startswith("kblrn_pyg.rules") or message not in self._seen:
            self._seen.add(message)
            return True
        return False


@contextmanager
def says_what_is_left_out() -> Iterator[None]:
    """Shows the log messages about entities and rules that are left out, once each."""
    logger = logging.getLogger("kblrn_pyg.rules")
    with ExitStack() as stack:
        stack.callback(logger.setLevel, logger.level)
        logger.setLevel(logging.INFO)
        for handler in logging.getLogger().handlers:
            once = _Once()
            stack.callback(handler.removeFilter, once)
            handler.addFilter(once)
        yield
