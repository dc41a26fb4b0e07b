"""Compares published rates with those of other programs."""
