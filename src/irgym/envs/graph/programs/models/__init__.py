"""The models, in torch. Imported in the exporting child only."""
