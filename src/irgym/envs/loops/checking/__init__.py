"""Inputs for checking the results of loop nests."""
