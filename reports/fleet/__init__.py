"""Merges the evidence of many machines: tollens merge."""
