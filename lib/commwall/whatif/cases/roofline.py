"""How long a GPU waits for its wire, by the way the model is split."""

from collections.abc import Iterable

from commwall import catalog
from commwall.balance import (
    bytes_per_flop,
    data_parallel_intensity,
    data_parallel_tokens,
    roofline_rate,
    tensor_parallel_intensity,
    tensor_parallel_ratio,
)
from commwall.kernels import product_rate
from commwall.units import TFLOP_PER_S, BytesPerSecond, FlopPerSecond
from commwall.whatif.answers import Answer
from commwall.whatif.cases import names
from commwall.whatif.controls import Choice, Range, doublings
from commwall.whatif.front import WhatIf
from commwall.whatif.pictures import Axis, Line, Lines, Table

GPUS = (*names.GPUS, "H800 SXM", "H20")
LINKS = ("PCIe 3.0 x16 host bounce", "PCIe 4.0 x16 host bounce",
         "PCIe 5.0 x16 host bounce", "PCIe 3.0 x16", "PCIe 4.0 x16", "PCIe 5.0 x16",
         "NVLink 3 bridge GA102", "NVLink 3", "NVLink 4 H800", "NVLink 4", "NVLink 5",
         "100 GbE RoCEv2", "InfiniBand NDR 400")  # fmt: skip
INTENSITIES = tuple(10 ** (1.5 + n / 10) for n in range(56))  # to 1e7 FLOP a byte


def network_roofline(gpu: str, link: str, hidden: int, ranks: int,
                     tokens: int) -> Answer:  # fmt: skip
    """FLOP/s against FLOP for each byte sent, at the rates that are achieved."""
    wire, rate = catalog.link(link).bandwidth, product_rate(catalog.gpu(gpu))
    ratio = tensor_parallel_ratio(hidden, ranks, wire, rate)
    tensor = tensor_parallel_intensity(hidden, ranks)
    data = data_parallel_intensity(tokens, ranks)
    splits = {"tensor parallel": tensor, "data parallel": data}
    return Answer(
        finding=f"Cut {ranks} ways, a layer computes {ratio:.3g} times as long as it "
        f"sends: the GPU waits {_waits(tensor, wire, rate)} of the time.",
        facts=(
            ("tensor parallel: FLOP for each byte", f"{tensor:,.0f}"),
            ("data parallel: FLOP for each byte", f"{data:,.0f}"),
            ("data parallel waits", _waits(data, wire, rate)),
            ("tokens for half and half",
             f"{data_parallel_tokens(ranks, wire, rate):,.0f}"),
            ("bytes per kFLOP, one way", f"{1e3 * bytes_per_flop(wire, rate):.3g}"),
        ),
        picture=_picture(splits, wire, rate),
        table=_table(splits, wire, rate),
    )  # fmt: skip


def _waits(intensity: float, wire: BytesPerSecond, rate: FlopPerSecond) -> str:
    """Share of the time that nothing hides."""
    return names.percent(1 - roofline_rate(intensity, wire, rate, overlap=False) / rate)


def _picture(
    splits: dict[str, float], wire: BytesPerSecond, rate: FlopPerSecond
) -> Lines:
    def reached(intensities: Iterable[float], overlap: bool) -> list[FlopPerSecond]:
        return [roofline_rate(each, wire, rate, overlap) for each in intensities]

    curves = {"all sending hidden": True, "none hidden": False}
    xs = sorted((*INTENSITIES, 1 / bytes_per_flop(wire, rate)))  # with the corner
    return Lines(
        x=Axis(label="FLOP for each byte sent", log=10),
        y=Axis(label="TFLOP/s of one GPU", one=TFLOP_PER_S, log=10),
        lines=(
            *(Line(label, xs, reached(xs, overlap))
              for label, overlap in curves.items()),
            *(Line(label, [each], reached([each], overlap=False), dots=True)
              for label, each in splits.items()),
        ),
    )  # fmt: skip


def _table(
    splits: dict[str, float], wire: BytesPerSecond, rate: FlopPerSecond
) -> Table:
    """The two splits, then the curves."""
    points = [*splits.items(), *(("curve", each) for each in INTENSITIES)]
    rows = (
        (label, each, roofline_rate(each, wire, rate),
         roofline_rate(each, wire, rate, overlap=False))
        for label, each in points
    )  # fmt: skip
    head = ("point", "FLOP for each byte sent", "all hidden (FLOP/s)",
            "none hidden (FLOP/s)")  # fmt: skip
    return Table(head, tuple(rows))


NETWORK_ROOFLINE = WhatIf(
    name="network_roofline",
    title="How long does a GPU wait for its wire?",
    controls=(
        Choice(name="gpu", label="GPU", options=GPUS, start="RTX 4090"),
        Choice(name="link", label="Link between them", options=LINKS,
               start="PCIe 4.0 x16 host bounce"),
        Range(name="hidden", label="Hidden size", start=8192, whole=True,
              stops=(1024, 2048, 4096, 5120, 8192, 12288, 16384, 20480, 25600)),
        Range(name="ranks", label="GPUs", stops=doublings(2, 64), start=8,
              whole=True),
        Range(name="tokens", label="Tokens a GPU and step",
              stops=doublings(1024, 2**20), start=4096, whole=True),
    ),
    answer=network_roofline,
)  # fmt: skip
