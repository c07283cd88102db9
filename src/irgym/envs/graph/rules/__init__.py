"""Rewrite rules in groups: one module for each, and a catalogue of all."""
