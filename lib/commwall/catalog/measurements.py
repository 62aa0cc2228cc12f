"""Collectives and copies that others measured, one row each, with the source.

Leaves out: what the source does not say, which is None; conditions between the lines.
"""

from dataclasses import dataclass
from functools import cache

from commwall.catalog.tables import row_of, rows, scaled
from commwall.rules import choice
from commwall.units import GB_PER_S, MICROSECOND, Bytes, BytesPerSecond, Seconds

_OPS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send", "copy",
        "copy_both_ways")  # fmt: skip
_P2P = {"on": True, "off": False, "": None}


@dataclass(frozen=True, kw_only=True, slots=True)
class BusBandwidth:
    """One measurement. Bus bandwidth counts one direction of one GPU."""

    system: str
    gpu: str  # name in the catalog, or "" where it has none
    gpus: int  # taking part
    nodes: int
    link: str  # the slowest link of the ring, or ""
    p2p: bool | None  # over PCIe; None: not at issue, or not said
    op: str
    message: Bytes | None  # whole buffer; None: large, not said how large
    algorithm: BytesPerSecond | None  # message / time
    bus: BytesPerSecond | None
    small_message: Seconds | None  # of a message of some bytes
    odd: bool  # well off what such a box gives; the note says how
    source: str
    certainty: str
    note: str


@cache
def _all() -> tuple[BusBandwidth, ...]:
    return tuple(_measurement(row) for row in rows("busbw"))


def _measurement(row: dict[str, str]) -> BusBandwidth:
    same = ("system", "gpu", "link", "op", "source", "certainty", "note")
    return BusBandwidth(
        **{field: row[field] for field in same},
        gpus=int(row["gpus"]),
        nodes=int(row["nodes"]),
        p2p=_P2P[row["p2p"]],
        message=scaled(row["message_bytes"], 1),
        algorithm=scaled(row["algbw_gb_per_s"], GB_PER_S),
        bus=scaled(row["busbw_gb_per_s"], GB_PER_S),
        small_message=scaled(row["small_us"], MICROSECOND),
        odd=row["odd"] == "1",
    )


def measured(
    gpu: str | None = None,
    *,
    link: str | None = None,
    op: str | None = None,
    gpus: int | None = None,
    nodes: int | None = None,
    p2p: bool | None = None,
    odd: bool | None = False,
) -> tuple[BusBandwidth, ...]:
    """Measurements that fit all that is given; odd boxes too with `odd=None`.

    >>> [row.bus / GB_PER_S for row in measured("MI300X", op="all_reduce")]
    [47.67, 312.9]
    """
    wanted = {
        "gpu": gpu and row_of("gpu", gpu)["name"],
        "link": link and row_of("link", link)["name"],
        "op": op and choice("op", op, _OPS),
        "gpus": gpus,
        "nodes": nodes,
        "p2p": p2p,
        "odd": odd,
    }
    given = {field: value for field, value in wanted.items() if value is not None}
    return tuple(
        row
        for row in _all()
        if all(getattr(row, field) == value for field, value in given.items())
    )
