"""Figures: chosen for a claim's evidence, held as data, drawn as SVG and PNG."""
