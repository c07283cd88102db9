"""`python -m irgym`."""

from irgym.cli.main import main

main()
