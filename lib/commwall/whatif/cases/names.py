"""Names that several what-ifs let the reader choose from, and plans in words."""

from math import floor, log10

from commwall.plan import Plan
from commwall.whatif.controls import Choice, Range, doublings

MODELS = ("GPT-2 124M", "LLaMA-2 7B", "Qwen2.5 7B", "LLaMA-3 8B", "LLaMA-2 13B",
          "LLaMA-2 70B", "Qwen2.5 72B", "GPT-3 175B", "LLaMA-3.1 405B")  # fmt: skip
GPUS = ("RTX 3090", "RTX 4090", "RTX 5090", "RTX A6000", "RTX 6000 Ada", "L40S",
        "A100-80 PCIe", "A100-80 SXM", "H100 PCIe", "H100 SXM5", "H200 SXM",
        "B200 SXM")  # fmt: skip
USUAL = "as usual for the GPU"
NETWORKS = (USUAL, "10 GbE (TCP)", "25 GbE RoCEv2", "100 GbE RoCEv2",
            "400 GbE RoCEv2", "InfiniBand HDR 200", "InfiniBand NDR 400")  # fmt: skip
RECOMPUTE = ("none", "selective", "full")
PEERS = {"as sold": None, "on": True, "off": False}


def model(start: str = "LLaMA-2 7B") -> Choice:
    """The model that is trained."""
    return Choice(name="model", label="Model", options=MODELS, start=start)


def gpu(start: str = "RTX 4090") -> Choice:
    """The GPU that trains it."""
    return Choice(name="gpu", label="GPU", options=GPUS, start=start)


def network(start: str = USUAL) -> Choice:
    """What joins boxes of eight; `USUAL` is what such GPUs have."""
    return Choice(name="network", label="Network between boxes", options=NETWORKS,
                  start=start)  # fmt: skip


def p2p(start: str = "as sold") -> Choice:
    """Whether GPUs without NVLink talk to each other directly."""
    return Choice(name="p2p", label="Peer-to-peer over PCIe", options=tuple(PEERS),
                  start=start)  # fmt: skip


def count(name: str, label: str, last: int, start: int) -> Range:
    """A whole number; the slider rests on powers of two."""
    return Range(name=name, label=label, stops=doublings(1, last), start=start,
                 whole=True)  # fmt: skip


def of_network(name: str) -> str | None:
    """The catalog's argument for a choice of `network`."""
    return None if name == USUAL else name


def percent(share: float) -> str:
    """A share with three digits, as axes write it."""
    return f"{100 * share:.3g} %"


def money(amount: float) -> str:
    """An amount in no currency, with three digits or to a hundredth.

    >>> money(0.0512), money(22.914), money(1280), money(0)
    ('0.0512', '22.91', '1,280', '0.00')
    """
    if amount >= 100:
        return f"{amount:,.0f}"
    digits = 2 - floor(log10(amount)) if amount else 2
    return f"{amount:.{max(2, digits)}f}"


def plan_words(plan: Plan) -> str:
    """A plan as a reader would say it.

    >>> plan_words(Plan(tp=2, pp=4, dp=2, zero_stage=1, global_batch=8))
    'tp 2, pp 4, dp 2, ZeRO-1'
    """
    degrees = [f"{axis} {getattr(plan, axis)}" for axis in ("tp", "pp", "dp")
               if getattr(plan, axis) > 1]  # fmt: skip
    words = degrees or ["one GPU"]
    words += [f"{plan.vpp} chunks"] * (plan.vpp > 1)
    words += [f"ZeRO-{plan.zero_stage}"] * (plan.zero_stage > 0)
    words += [f"micro-batch {plan.micro_batch}"] * (plan.micro_batch > 1)
    again = {"full": "all recomputed", "selective": "attention recomputed"}
    words += [again[plan.recompute]] if plan.recompute in again else []
    return ", ".join(words)


def plan_code(plan: Plan) -> str:
    """A plan as short as the page on the search writes it, for where words are long.

    >>> plan_code(Plan(pp=4, vpp=8, dp=2, global_batch=8, recompute="full"))
    'tp1 pp4x8 dp2 z0 mb1 full'
    """
    chunks = f"x{plan.vpp}" if plan.vpp > 1 else ""
    return (
        f"tp{plan.tp} pp{plan.pp}{chunks} dp{plan.dp} z{plan.zero_stage} "
        f"mb{plan.micro_batch} {plan.recompute}"
    )
