"""What GPUs and electricity cost, as somebody quoted it on a day.

A quotation is a range, and it goes stale: rents within weeks. Readers should put their
own prices in; these only give a start. Launch prices are in `GPU.launch_price`.

Leaves out: taxes, volume discounts, storage and traffic that a landlord adds, and the
host around a card.
"""

from dataclasses import dataclass
from functools import cache

from commwall.catalog.tables import gpu_names, row_of, rows
from commwall.rules import choice
from commwall.units import HOUR, KWH

_SI = {  # a unit of the table: its name here, and how much of that it is
    "piece": ("piece", 1.0),
    "GPU-hour": ("GPU-second", HOUR),
    "kWh": ("joule", KWH),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Price:
    """One quotation: from `low` to `high` of a currency for one `unit`."""

    item: str  # a GPU of the catalog, or "electricity, ..."
    low: float
    high: float
    currency: str  # ISO 4217
    unit: str  # "piece", "GPU-second" or "joule"
    date: str  # year, and month or half where known
    source: str
    certainty: str  # A primary statistics or two agree, B one source
    note: str

    @property
    def middle(self) -> float:
        """Half way between the ends: a start for a reader without a price."""
        return (self.low + self.high) / 2


@cache
def _all() -> tuple[Price, ...]:
    return tuple(_price(row) for row in rows("prices"))


def _price(row: dict[str, str]) -> Price:
    unit, amount = _SI[row["unit"]]
    same = ("item", "currency", "date", "source", "certainty", "note")
    return Price(
        low=float(row["low"]) / amount,
        high=float(row["high"]) / amount,
        unit=unit,
        **{field: row[field] for field in same},
    )


def prices(item: str | None = None, *, unit: str | None = None) -> tuple[Price, ...]:
    """Quotations that fit all that is given, oldest of the table first.

    >>> [rent] = prices("H100 SXM5", unit="GPU-second")
    >>> round(rent.low * HOUR, 2), rent.currency, rent.date
    (2.69, 'USD', '2026-03')
    """
    if unit is not None:
        choice("unit", unit, [name for name, _ in _SI.values()])
    name = None if item is None else _named(item)
    return tuple(
        price
        for price in _all()
        if name in (None, price.item) and unit in (None, price.unit)
    )


def _named(item: str) -> str:
    """The name in the table; a GPU may be spelt as in `gpu`."""
    others = sorted({price.item for price in _all()} - set(gpu_names()))
    if str(item).startswith("electricity"):
        return choice("item", item, others)
    return row_of("gpu", item)["name"]
