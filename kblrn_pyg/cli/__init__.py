"""The ``kblrn`` command; nothing else imports this."""
