"""Ports made real: one file for each engine and role."""
