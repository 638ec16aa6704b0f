"""`python -m imapce` is the `imapce` command."""

from imapce.cli import main

main()
