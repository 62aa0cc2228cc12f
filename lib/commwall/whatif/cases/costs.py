"""What a token costs, bought or rented, and up to which link compressing pays."""

from commwall import catalog, compression
from commwall.compression import SCHEMES
from commwall.compression.gradients import gradient_shapes
from commwall.economics import (
    MILLION,
    Owned,
    break_even_utilization,
    cost_of_tokens,
    energy_of_tokens,
)
from commwall.units import HOUR, KWH, YEAR, Bytes, BytesPerSecond, Seconds, format_si
from commwall.whatif.answers import Answer
from commwall.whatif.cases import names
from commwall.whatif.controls import Choice, Range, scale
from commwall.whatif.front import WhatIf
from commwall.whatif.pictures import Axis, Line, Lines, Mark

CARD = catalog.RTX_4090
PIECE = catalog.prices(CARD.name, unit="piece")[0].middle
RENT = catalog.prices(CARD.name, unit="GPU-second")[0].middle * HOUR
USES = tuple(n / 50 for n in range(1, 51))
BANDWIDTHS = tuple(1e9 * 10 ** (n / 12) for n in range(37))  # 1 to 1,000 GB/s
BY_NAME = {scheme.name: scheme for scheme in SCHEMES}
RIVAL = BY_NAME["bf16"]
ENCODED = tuple(name for name, s in BY_NAME.items() if not s.delay and name != "bf16")


def _owned(price: float, years: Seconds, power: float, electricity: float,
           use: float) -> Owned:  # fmt: skip
    return Owned(price=price, lifetime=years, power=power, electricity=electricity,
                 utilization=use)  # fmt: skip


def cost_of_use(gpus: int, card: float, host: float, years: Seconds, watts: float,
                electricity: float, use: float, rent: float,
                useful: float) -> Answer:  # fmt: skip
    """Money for a million tokens against how much of its life a machine works."""
    machine = gpus * card + host, years, watts, electricity
    mine, hire = _owned(*machine, use), gpus * rent
    even = break_even_utilization(mine, hire)
    now, hired = (cost_of_tokens(MILLION, r, useful) for r in (mine.cost_rate, hire))
    pays = f"pays from {names.percent(even)} use on" if even <= 1 else "never pays"
    energy = energy_of_tokens(MILLION, watts, useful)
    by_use = [cost_of_tokens(MILLION, _owned(*machine, u).cost_rate, useful)
              for u in USES]  # fmt: skip
    return Answer(
        finding=f"A million tokens cost {names.money(now)} if bought and used "
        f"{names.percent(use)} of the time, {names.money(hired)} rented: "
        f"buying {pays}.",
        facts=(("price of the machine", names.money(mine.price)),
               ("an hour at work, bought", names.money(mine.cost_rate * HOUR)),
               ("an hour rented", names.money(hire * HOUR)),
               ("energy of a million tokens", format_si(energy / HOUR, "Wh"))),
        picture=_against_use(by_use, hired, even, (use, now)),
    )  # fmt: skip


def _against_use(bought: list[float], hired: float, even: float,
                 yours: tuple[float, float]) -> Lines:  # fmt: skip
    top = 3 * max(yours[1], hired)
    return Lines(
        x=Axis(label="share of its life that it works", unit="%", low=0, high=1),
        y=Axis(label="a million tokens, your money", low=0, high=top),
        lines=(Line("bought", USES, bought), Line("rented", USES, [hired] * len(USES))),
        marks=(Mark("equal", even, hired),) if even <= 1 else (),
        rules=(("yours", yours[0]),),
    )


COST_OF_TOKENS = WhatIf(
    name="cost_of_tokens",
    title="What does a token cost you?",
    controls=(
        names.count("gpus", "GPUs", 64, 8),
        Range(name="card", label="Price of a card", start=PIECE,
              stops=scale(100, 50_000)),
        Range(name="host", label="Price of the rest", start=4000,
              stops=(0.0, *scale(500, 500_000))),
        Range(name="years", label="Kept for", unit="years", one=YEAR, start=3,
              stops=(1, 2, 3, 4, 5, 6, 8)),
        Range(name="watts", label="Power at work", unit="W", start=8 * CARD.tdp + 500,
              stops=scale(100, 100_000)),
        Range(name="electricity", label="Electricity, a kWh", one=1 / KWH, start=0.2,
              stops=tuple(n / 20 for n in range(21))),
        Range(name="use", label="Works", unit="%", one=0.01, start=50,
              stops=(1, 2, 5, *range(10, 101, 10))),
        Range(name="rent", label="Rent of a GPU-hour", one=1 / HOUR, start=RENT,
              stops=(0.0, *scale(0.1, 20))),
        Range(name="useful", label="Tokens a second", start=14_400,
              stops=scale(100, 1e7)),
    ),
    answer=cost_of_use,
)  # fmt: skip


def break_even(scheme: str, model: str, gpu: str, ranks: int,
               bandwidth: BytesPerSecond, slowdown: float) -> Answer:  # fmt: skip
    """Seconds of one sync, encoding included, against the bandwidth of the link."""
    shapes, card, ours = (gradient_shapes(catalog.model(model)), catalog.gpu(gpu),
                          BY_NAME[scheme])  # fmt: skip
    pays = compression.break_even_bandwidth(ours, RIVAL, shapes, ranks, card,
                                            slowdown=slowdown)  # fmt: skip
    sends, plain = (compression.sent(each, shapes, ranks) for each in (ours, RIVAL))
    encode = compression.codec_time(ours, shapes, ranks, card, slowdown) / ours.every
    now, before = encode + sends / bandwidth, plain / bandwidth
    return Answer(
        finding=f"{scheme}: {format_si(now, 's')} a step against "
        f"{format_si(before, 's')} with bf16 at {format_si(bandwidth, 'B/s')}; "
        f"it pays {_below(pays)}.",
        facts=(
            ("sent by a rank, bf16", format_si(plain, "B")),
            (f"sent, {scheme}", format_si(sends, "B")),
            ("of its time, encoding", format_si(encode, "s")),
            ("pays", _below(pays)),
        ),
        picture=_against_bandwidth(scheme, plain, sends, encode, pays, bandwidth),
    )


def _against_bandwidth(name: str, plain: Bytes, sends: Bytes, encode: Seconds,
                       pays: BytesPerSecond,
                       yours: BytesPerSecond) -> Lines:  # fmt: skip
    """Two syncs, without latency: bytes over bandwidth, and what encoding takes."""
    within = BANDWIDTHS[0] <= pays <= BANDWIDTHS[-1]
    return Lines(
        x=Axis(label="bandwidth of the link, one direction", unit="B/s", log=10),
        y=Axis(label="sync of one step, nothing hidden, no latency", unit="s", log=10),
        lines=(Line("bf16", BANDWIDTHS, [plain / rate for rate in BANDWIDTHS]),
               Line(name, BANDWIDTHS, [encode + sends / rate for rate in BANDWIDTHS])),
        marks=(Mark("equal", pays, plain / pays),) if within else (),
        rules=(("yours", yours),),
    )  # fmt: skip


def _below(pays: BytesPerSecond) -> str:
    if pays == 0:
        return "on no link"
    if pays == float("inf"):
        return "on every link"
    return f"below {format_si(pays, 'B/s')}"


BREAK_EVEN = WhatIf(
    name="break_even",
    title="Up to which link does compressing pay?",
    controls=(
        Choice(name="scheme", label="Scheme", options=ENCODED, start="1 bit, feedback"),
        names.model(),
        names.gpu(),
        Range(name="ranks", label="GPUs", start=8, whole=True,
              stops=(2, 4, 8, 16, 32, 64, 128, 256)),
        Range(name="bandwidth", label="Your link", unit="GB/s", one=1e9, start=18,
              stops=scale(1, 1000)),
        Range(name="slowdown", label="Encoder slower than ideal by", start=1,
              stops=(1, 1.5, 2, 3, 5, 10, 20)),
    ),
    answer=break_even,
)  # fmt: skip
