"""SI constants, the aliases that carry a unit in a signature, and one formatter.

Inside the library a number is in seconds, bytes, FLOP, byte/s or FLOP/s. Multiply by
these constants where a vendor's figure enters; divide or format where one is shown.
"""

from math import floor, isfinite, log10

Seconds = float
Bytes = float
BytesPerSecond = float
Flop = float
FlopPerSecond = float
Watts = float
Joules = float

KB, MB, GB, TB = 1e3, 1e6, 1e9, 1e12
KIB, MIB, GIB, TIB = 2**10, 2**20, 2**30, 2**40
GBIT_PER_S = 1e9 / 8  # network rates are sold in bits
GB_PER_S = 1e9
TFLOP, TFLOP_PER_S = 1e12, 1e12
MILLISECOND, MICROSECOND = 1e-3, 1e-6
HOUR, DAY, YEAR = 3600.0, 86400.0, 365 * 86400.0
KWH = 3.6e6  # joules

_PREFIXES = {-4: "p", -3: "n", -2: "u", -1: "m", 0: "", 1: "k", 2: "M", 3: "G",
             4: "T", 5: "P", 6: "E"}  # fmt: skip


def format_si(value: float, unit: str) -> str:
    """`value` with three significant digits and an SI prefix.

    Leaves out: binary prefixes; memory sizes in GiB are printed as `value / GIB`.

    >>> format_si(7.8124e-3, "s"), format_si(24.5e9, "B/s"), format_si(0, "B")
    ('7.81 ms', '24.5 GB/s', '0 B')
    >>> format_si(999.96, "B")                  # rounds up into the next prefix
    '1 kB'
    """
    if value == 0 or not isfinite(value):
        return f"{value:g} {unit}"
    rounded = float(f"{value:.3g}")
    group = min(max(floor(log10(abs(rounded)) / 3), -4), 6)
    digits = f"{rounded / 1000.0**group:.4g}"
    return f"{digits} {_PREFIXES[group]}{unit}"
