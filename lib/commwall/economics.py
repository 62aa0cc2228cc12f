r"""What a machine's tokens cost, in the reader's own money.

Money has no unit here: whatever currency goes in comes out. Time is in seconds, energy
in joules, and a price is per second or per joule; write `0.34 / HOUR` for a rent and
`0.12 / KWH` for electricity. Only tokens that end up in the model count: `useful` is
tokens a second over the whole run, with its restarts. barroso2018 is the usual account.

Leaves out: interest, inflation, taxes, and the price of waiting for the result.
"""

from dataclasses import dataclass
from math import inf

from commwall.rules import nonnegative, positive
from commwall.units import YEAR, Joules, Seconds, Watts

__all__ = [
    "MILLION",
    "PUE_SURVEYED",
    "Owned",
    "break_even_time",
    "break_even_utilization",
    "cost_of_tokens",
    "energy_of_tokens",
]

Money = float
MoneyPerSecond = float
MoneyPerJoule = float

MILLION = 1e6  # tokens, as prices are quoted

PUE_SURVEYED = 1.54
"""Power that data centers draw over what their computers get, mean of the answers to
a survey of 2025; new large sites reach 1.3. A rig at home without cooling: 1.
uptime2025."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Owned:
    """A machine that is bought, kept for `lifetime`, and used for a part of it.

    >>> from commwall.units import HOUR, KWH
    >>> rig = Owned(price=26_280, lifetime=3 * YEAR, power=4e3, electricity=0.1 / KWH,
    ...             utilization=0.5)
    >>> round(rig.cost_rate * HOUR, 3)   # 26280 / (26280 h / 2) + 4 kW * 0.1
    2.4
    """

    price: Money  # of everything, host and network included
    lifetime: Seconds
    power: Watts  # of the whole machine at work, at its plug
    electricity: MoneyPerJoule
    utilization: float  # share of the lifetime in which it works
    pue: float = 1.0  # power of the site over the machine's own
    idle_power: Watts = 0.0  # at the plug, when it does not work
    yearly: Money = 0.0  # room, network, repairs, people
    resale: Money = 0.0  # at the end of the lifetime

    def __post_init__(self):
        positive("lifetime", self.lifetime)
        for field in ("price", "power", "electricity", "idle_power", "yearly"):
            nonnegative(field, getattr(self, field))
        if positive("utilization", self.utilization) > 1:
            raise ValueError(f"utilization={self.utilization} must be at most 1")
        if positive("pue", self.pue) < 1:
            raise ValueError(f"pue={self.pue} must be at least 1")
        if nonnegative("resale", self.resale) > self.price:
            raise ValueError(f"resale={self.resale} must be at most price={self.price}")

    @property
    def standing_rate(self) -> MoneyPerSecond:
        """Cost of a second that passes, at work or not: wear and yearly costs."""
        return (self.price - self.resale) / self.lifetime + self.yearly / YEAR

    @property
    def running_rate(self) -> MoneyPerSecond:
        """Electricity of a second at work."""
        return self.power * self.pue * self.electricity

    @property
    def idle_rate(self) -> MoneyPerSecond:
        """Electricity of a second that is not used."""
        return self.idle_power * self.pue * self.electricity

    @property
    def cost_rate(self) -> MoneyPerSecond:
        r"""Cost of a second at work, which has to carry the idle ones as well.

        $$\frac{s + (1-u)\,i}{u} + r$$

        with standing, idle and running rates $s, i, r$ and utilization $u$: a machine
        used half the time costs nearly twice as much an hour.
        """
        idle = (1 - self.utilization) * self.idle_rate
        return (self.standing_rate + idle) / self.utilization + self.running_rate


def cost_of_tokens(tokens: float, cost_rate: MoneyPerSecond, useful: float) -> Money:
    """Money for so many tokens: `MILLION` of them, or all that a model is trained on.

    `cost_rate` is `Owned.cost_rate`, or the rent of a GPU times the number of GPUs.

    >>> round(cost_of_tokens(MILLION, 8 * 0.34 / 3600, 10_000), 4)   # 8 cards, 100 s
    0.0756
    """
    nonnegative("cost_rate", cost_rate)
    return nonnegative("tokens", tokens) / positive("useful", useful) * cost_rate


def energy_of_tokens(
    tokens: float, power: Watts, useful: float, pue: float = 1.0
) -> Joules:
    """Joules for so many tokens, cooling included by `pue`.

    >>> energy_of_tokens(1, 3600, 9_000)      # eight cards of 450 W, joules a token
    0.4
    """
    watts = nonnegative("power", power) * positive("pue", pue)
    return nonnegative("tokens", tokens) / positive("useful", useful) * watts


def break_even_utilization(
    owned: Owned, rent: MoneyPerSecond, speed: float = 1.0
) -> float:
    r"""Utilization from which the owned machine's tokens are cheaper than rented ones.

    $$u^* = \frac{s + i}{v R - r + i}$$

    `rent` is of the whole rented machine, and `speed` the tokens a second of the owned
    one over those of the rented. Above 1 renting is always cheaper; infinite where the
    rent is less than the electricity alone. The owner's own `utilization` plays no
    part. Leaves out: rented hours that are paid for and not used.

    >>> rig = Owned(price=26_280, lifetime=3 * YEAR, power=0, electricity=0,
    ...             utilization=1)
    >>> round(break_even_utilization(rig, rent=4 / 3600), 9)     # 1 an hour against 4
    0.25
    """
    gain = positive("speed", speed) * nonnegative("rent", rent) - owned.running_rate
    if gain + owned.idle_rate <= 0:
        return inf
    return (owned.standing_rate + owned.idle_rate) / (gain + owned.idle_rate)


def break_even_time(owned: Owned, rent: MoneyPerSecond, speed: float = 1.0) -> Seconds:
    """Seconds at work, within the lifetime, after which buying has paid.

    More than the lifetime means never.
    """
    return break_even_utilization(owned, rent, speed) * owned.lifetime
