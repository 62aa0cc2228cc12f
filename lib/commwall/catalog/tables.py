"""Look-up by name in the tables of `data/`, and their rows as GPUs, links and models.

Leaves out: prices of today (see `prices`); clocks under load.
"""

import csv
import re
from functools import cache
from importlib.resources import files

from commwall.hardware import GPU, USUAL_PRODUCT, Link
from commwall.model import Model
from commwall.rules import choice, nearest_names
from commwall.units import GB_PER_S, GIB, MICROSECOND, TFLOP_PER_S, FlopPerSecond

_FILES = {"gpu": "gpus", "link": "links", "model": "models"}
_SHAPE = ("layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "seq")
_FLAGS = ("gated_mlp", "tied_embeddings", "biases", "qkv_bias", "learned_positions",
          "dropout")  # fmt: skip
_ORIGIN = ("source", "certainty", "note")


@cache
def rows(table: str) -> tuple[dict[str, str], ...]:
    """All rows of one of the files in `data/`, as text."""
    path = files("commwall") / "data" / f"{table}.csv"
    with path.open(encoding="utf-8", newline="") as lines:
        return tuple(csv.DictReader(lines))


def _key(name: str) -> str:
    """`name` without owner, maker, case, spaces and marks: what look-up compares."""
    # meta-llama/Llama-2-70b-hf
    bare = re.sub(r"^[\w.-]+/", "", name.strip().casefold())
    return re.sub("nvidia|geforce|hf$", "", re.sub("[^a-z0-9]", "", bare))


@cache
def _index(table: str) -> dict[str, tuple[dict[str, str], ...]]:
    """Rows by the key of each of their names; two rows may share one."""
    index: dict[str, tuple[dict[str, str], ...]] = {}
    for row in rows(table):
        for key in {_key(name) for name in [row["name"], *row["aliases"].split("; ")]}:
            index[key] = (*index.get(key, ()), row)
    return index


def row_of(kind: str, name: str) -> dict[str, str]:
    """The one row that goes by `name`; an error where there are none or several."""
    if not isinstance(name, str):
        raise ValueError(f"{kind}={name!r} must be a name, as text")
    found = _index(_FILES[kind]).get(_key(name), ())
    if len(found) == 1:
        return found[0]
    if found:
        candidates = " or ".join(row["name"] for row in found)
        raise ValueError(f"{kind}={name!r} may be {candidates}: say which")
    for row in _index("left_out").get(_key(name), ()):
        if row["kind"] == kind:
            why = row["reason"]
            raise ValueError(f"{kind}={name!r} is left out of the catalog: {why}")
    near = ", ".join(nearest_names(name, _names(kind)) or _names(kind))
    raise ValueError(f"{kind}={name!r} is not in the catalog; nearest names: {near}")


def _names(kind: str) -> tuple[str, ...]:
    return tuple(row["name"] for row in rows(_FILES[kind]))


def gpu_names() -> tuple[str, ...]:
    """Names of the GPUs: cards, then modules, then other makers'."""
    return _names("gpu")


def link_names() -> tuple[str, ...]:
    """Names of the links: inside a box, then between boxes."""
    return _names("link")


def model_names() -> tuple[str, ...]:
    """Names of the models."""
    return _names("model")


def data_sheet(kind: str, name: str) -> dict[str, str]:
    """All cells of a "gpu", "link" or "model", as text in vendors' units.

    >>> data_sheet("gpu", "RTX 4090")["driver_mib"]     # of 24 * 1024
    '24564'
    """
    return dict(row_of(choice("kind", kind, _FILES), name))


def scaled(cell: str, unit: float) -> float | None:
    """A cell in SI; None where it is empty."""
    return float(cell) * unit if cell else None


def gpu(name: str) -> GPU:
    """The GPU of that name. A name of two chips, such as "H100", is an error.

    >>> gpu("GeForce RTX 4090").compute / TFLOP_PER_S  # 128 SM, 512 FMA/2, 2.52 GHz
    165.2
    >>> gpu("NVIDIA A100-SXM4-80GB").name
    'A100-80 SXM'
    """
    return _gpu(row_of("gpu", name)["name"])


@cache
def _gpu(name: str) -> GPU:
    row = row_of("gpu", name)
    return GPU(
        name=name,
        memory=int(row["memory_gib"]) * GIB,
        compute=float(row["bf16_tflop_per_s"]) * TFLOP_PER_S,
        memory_bandwidth=float(row["memory_gb_per_s"]) * GB_PER_S,
        product=scaled(row["matmul_tflop_per_s"], TFLOP_PER_S),
        attention=scaled(row["attention_tflop_per_s"], TFLOP_PER_S),
        tf32=_best_product(row, "tf32"),
        fp32=_best_product(row, "fp32"),
        sms=int(row["sms"]),
        tdp=float(row["tdp_w"] or 0),
        p2p=row["p2p"] == "1",
        geforce=row["half_rate"] == "1",
        year=int(row["year"]),
        launch_price=scaled(row["launch_usd"], 1),
        **{field: row[field] for field in _ORIGIN},
    )


def _best_product(row: dict[str, str], arithmetic: str) -> FlopPerSecond | None:
    """As measured, else the usual fraction of the peak; None where neither is known."""
    measured = scaled(row[f"matmul_{arithmetic}_tflop_per_s"], TFLOP_PER_S)
    peak = scaled(row[f"{arithmetic}_tflop_per_s"], TFLOP_PER_S)
    return measured or (peak and USUAL_PRODUCT * peak)


def link(name: str) -> Link:
    """The link of that name, at the bandwidth that large messages achieve.

    >>> nvlink = link("nvlink4")
    >>> round(nvlink.bandwidth / nvlink.datasheet, 3)       # 367.6 / 450
    0.817
    """
    return _link(row_of("link", name)["name"])


@cache
def _link(name: str) -> Link:
    row = row_of("link", name)
    return Link(
        name=name,
        bandwidth=float(row["achieved_gb_per_s"]) * GB_PER_S,
        latency=float(row["latency_us"]) * MICROSECOND,
        datasheet=float(row["datasheet_gb_per_s"]) * GB_PER_S,
        in_network=scaled(row["in_network_gb_per_s"], GB_PER_S),
        in_network_latency=scaled(row["in_network_latency_us"], MICROSECOND),
        through_host=row["through_host"] == "1",
        **{field: row[field] for field in _ORIGIN},
    )


def model(name: str) -> Model:
    """The model of that name, at the sequence length that it was trained at.

    >>> model("meta-llama/Llama-2-70b-hf").params
    68976648192
    """
    return _model(row_of("model", name)["name"])


@cache
def _model(name: str) -> Model:
    row = row_of("model", name)
    return Model(
        *(int(row[field]) for field in _SHAPE),
        **{field: row[field] == "1" for field in _FLAGS},
        experts=int(row["experts"]),
        top_k=int(row["top_k"]),
        name=name,
        source=row["source"],
    )
