"""Which programs there are: operators, chains, networks and files, and their URIs."""
