"""Programs of the `loops` environment: contractions, their URIs, and data sets."""
