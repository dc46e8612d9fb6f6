"""The commands of the shell; nothing else imports this."""
