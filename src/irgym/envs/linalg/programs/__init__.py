"""Programs and their URIs: operators, chains, networks, files, and data sets of them."""
