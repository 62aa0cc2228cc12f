"""Parallel training in miniature: real arrays move between ranks and are counted.

These modules know nothing of the formulas, so that the formulas can be held against
them. They need numpy, and each fits on a page.
"""
