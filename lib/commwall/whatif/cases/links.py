"""What one collective costs, by its size and on several links."""

from commwall import catalog
from commwall.collectives import all_reduce_time, busbw, half_bandwidth_payload
from commwall.hardware import Link
from commwall.units import MB, Bytes, Seconds, format_si
from commwall.whatif.answers import Answer
from commwall.whatif.controls import Range, doublings, scale
from commwall.whatif.front import WhatIf
from commwall.whatif.pictures import Axis, Line, Lines, Mark

LINKS = ("NVLink 4", "NVLink 3", "PCIe 4.0 x16",
         "PCIe 4.0 x16 host bounce")  # fmt: skip
SIZES = tuple(10 ** (3 + n / 4) for n in range(29))  # 1 kB to 10 GB


def message_time(ranks: int, payload: Bytes) -> Answer:
    """Seconds of a ring all-reduce against its payload, on four links."""
    links = [catalog.link(name) for name in LINKS]
    times = {link: all_reduce_time(payload, ranks, link) for link in links}
    fast, slow = min(links, key=times.get), max(links, key=times.get)
    return Answer(
        finding=f"{format_si(payload, 'B')} over {ranks} GPUs take "
        f"{format_si(times[fast], 's')} on {fast.name} and "
        f"{format_si(times[slow], 's')} on {slow.name}.",
        facts=tuple(_fact(link, times[link], payload, ranks) for link in links),
        picture=Lines(
            x=Axis(label="payload", unit="B", log=10),
            y=Axis(label="time; a ring marks half the bandwidth", unit="s", log=10),
            lines=tuple(_line(link, ranks) for link in links),
            marks=tuple(_half(link, ranks) for link in links),
            rules=((format_si(payload, "B"), payload),),
        ),
    )


def _fact(link: Link, seconds: Seconds, payload: Bytes, ranks: int) -> tuple[str, str]:
    rate = format_si(busbw(payload, seconds, ranks), "B/s")
    half = format_si(half_bandwidth_payload(ranks, link), "B")
    return link.name, f"{format_si(seconds, 's')}, {rate}; half from {half}"


def _line(link: Link, ranks: int) -> Line:
    return Line(link.name, SIZES, [all_reduce_time(s, ranks, link) for s in SIZES])


def _half(link: Link, ranks: int) -> Mark:
    payload = half_bandwidth_payload(ranks, link)
    return Mark("", payload, all_reduce_time(payload, ranks, link))


MESSAGE_TIME = WhatIf(
    name="message_time",
    title="How long does one all-reduce take?",
    controls=(
        Range(name="ranks", label="GPUs", stops=doublings(2, 1024), start=8,
              whole=True),
        Range(name="payload", label="Payload", unit="MB", one=MB,
              stops=scale(0.001, 10_000), start=100),
    ),
    answer=message_time,
)  # fmt: skip
