"""Observations of loop nests: features for policies, and LoopTune's observation spaces."""
