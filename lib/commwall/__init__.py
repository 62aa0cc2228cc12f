"""The formulas of the course "The Communication Wall".

Numbers inside are in seconds, bytes, FLOP, byte/s and FLOP/s; a bandwidth is one
direction of one GPU. Inputs are frozen dataclasses, formulas are pure functions.
"""
