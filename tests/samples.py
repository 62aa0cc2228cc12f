"""Models, machines and random legal plans that several files of tests share."""

from dataclasses import replace
from math import gcd

import numpy as np
from hypothesis import strategies as st

from commwall.hardware import GPU, Cluster, Link, Tier
from commwall.model import Model
from commwall.passes import layer_pass
from commwall.plan import Overlap, Plan

NVLINK = Link(name="NVLink", bandwidth=235e9, latency=2e-6, source="example")
NIC = Link(name="NIC", bandwidth=24e9, latency=4e-6, source="example")
A100 = GPU(
    name="A100",
    memory=80 * 2**30,
    compute=312e12,
    memory_bandwidth=2039e9,
    source="example",
)
LLAMA_70B = Model(
    80, 8192, 64, 8, 28672, 32000, 4096, gated_mlp=True, tied_embeddings=False
)
MIXTRAL = Model(
    32, 4096, 32, 8, 14336, 32000, 4096,
    gated_mlp=True, tied_embeddings=False, experts=8, top_k=2,
)  # fmt: skip

# What a reader may type where a whole number of at least 1 belongs.
NOT_COUNTS = [
    0, -1, 2.0, 2.5, float("nan"), float("inf"), 1e308, "2", b"2", None, True, [2],
    (2,), {}, 1j, 10**400, np.float64(2), np.array([2]), np.True_,
]  # fmt: skip
# What a reader may type where a number of bytes or seconds belongs.
NOT_SIZES = [
    -1, -1.0, float("nan"), float("inf"), -float("inf"), 1e308, 10**400, "1", b"1",
    None, True, [1.0], (1.0,), {}, 1j, np.float64("nan"), np.array([1.0, np.nan]),
    np.array(["1"]), np.array([1j]), np.array([None]), np.array([True]),
]  # fmt: skip


def gpt(layers, hidden, heads, seq, vocab=51200):
    """A GPT as Megatron's papers count it: biases, dropout, learned positions."""
    return Model(
        layers, hidden, heads, heads, 4 * hidden, vocab, seq,
        gated_mlp=False, tied_embeddings=True, biases=True, learned_positions=True,
        dropout=True,
    )  # fmt: skip


def cluster(gpus, *, gpu=A100, inside=NVLINK, between=NIC, gpus_per_node=8, nics=8):
    """Nodes of GPUs behind a switch, joined by one network."""
    tiers = (
        Tier(gpus_per_node, link=inside),
        Tier(max(gpus, gpus_per_node), link=between),
    )
    return Cluster(
        gpu=gpu, gpus=gpus, tiers=tiers, gpus_per_node=gpus_per_node, nics_per_node=nics
    )


def faster(link, factor):
    """The same link with so many times the bandwidth."""
    return replace(link, bandwidth=link.bandwidth * factor)


rates = st.floats(1e9, 1e13)
latencies = st.sampled_from([0.0, 1e-6, 1e-4])
links = st.builds(
    Link,
    name=st.just("any"),
    bandwidth=rates,
    latency=latencies,
    source=st.just("test"),
)


@st.composite
def models(draw):
    """Any transformer, dense or with experts, whose sizes can be cut into eight."""
    kv_heads = draw(st.sampled_from([1, 2, 8]))
    experts = draw(st.sampled_from([1, 1, 4, 8]))
    layers = draw(st.sampled_from([4, 6, 8, 12]))
    return Model(
        layers,
        draw(st.sampled_from([128, 1024, 4096])),
        kv_heads * draw(st.sampled_from([1, 4])),
        kv_heads,
        draw(st.sampled_from([256, 4096])),
        draw(st.sampled_from([1000, 50257])),
        draw(st.sampled_from([64, 2048])),
        gated_mlp=draw(st.booleans()),
        tied_embeddings=draw(st.booleans()),
        head_dim=draw(st.sampled_from([16, 128])),
        experts=experts,
        shared_experts=draw(st.integers(0, 1)),
        top_k=draw(st.integers(1, min(experts, 2))),
        moe_ffn=draw(st.sampled_from([None, 64])),
        dense_layers=draw(st.sampled_from([None, 1])) if experts > 1 else None,
        biases=draw(st.booleans()),
        dropout=draw(st.booleans()),
    )


def divisors_of(number, at_most=8):
    """Degrees that divide a size."""
    return [n for n in range(1, at_most + 1) if number % n == 0]


@st.composite
def plans(draw, model):
    """Any legal plan of the model, of up to some thousand GPUs."""
    tp = draw(st.sampled_from(divisors_of(gcd(model.kv_heads, model.ffn))))
    pp = draw(st.sampled_from(divisors_of(model.layers)))
    schedule = draw(st.sampled_from(["gpipe", "1f1b", "zero_bubble"]))
    chunks = divisors_of(model.layers // pp) if pp > 1 and schedule == "1f1b" else [1]
    vpp, cp = draw(st.sampled_from(chunks)), draw(st.sampled_from([1, 2, 4]))
    dp = draw(st.sampled_from([1, 2, 3, 8]))
    ulysses = model.kv_heads // tp % cp == 0 and draw(st.booleans())
    rounds, micro_batch = draw(st.integers(1, 5)), draw(st.integers(1, 2))
    return Plan(
        tp=tp,
        pp=pp,
        vpp=vpp,
        dp=dp,
        cp=cp,
        ep=draw(st.sampled_from(divisors_of(gcd(dp * cp, model.experts)))),
        zero_stage=draw(st.integers(0, 3)),
        micro_batch=micro_batch,
        global_batch=dp * micro_batch * rounds * (pp if vpp > 1 else 1),
        sequence_parallel=draw(st.booleans()),
        recompute=draw(st.sampled_from(["none", "selective", "full"])),
        schedule=schedule,
        context="ulysses" if ulysses else "ring",
        fused_attention=draw(st.booleans()),
        fused_kernels=draw(st.booleans()),
        keep_gathered=draw(st.booleans()),
        scatter_gather=draw(st.booleans()),
        overlap=Overlap(
            **{axis: draw(st.booleans()) for axis in ("dp", "zero3", "cp")}
        ),
    )


@st.composite
def planned(draw):
    """A model and a legal plan for it."""
    model = draw(models())
    return model, draw(plans(model))


@st.composite
def runs(draw):
    """A model, a legal plan for it and a cluster of just its size."""
    model, plan = draw(planned())
    return model, plan, draw(clusters(plan.gpus))


@st.composite
def clusters(draw, gpus):
    """Any cluster of so many GPUs."""
    gpu = GPU(
        name="any",
        memory=1e11,
        compute=draw(st.floats(1e12, 1e16)),
        memory_bandwidth=draw(st.floats(1e11, 1e13)),
        source="test",
        sms=draw(st.sampled_from([1, 108, 132])),
    )
    per_node = gpus if gpus <= 8 else gcd(gpus, 8)
    return cluster(
        gpus,
        gpu=gpu,
        inside=draw(links),
        between=draw(links),
        gpus_per_node=per_node,
        nics=draw(st.sampled_from([1, 8])),
    )


def stage_forward(model, plan, gpu):
    """The layers of the stage that has most, forward."""
    return layer_pass(model, plan, gpu).of_layers(plan.most_layers(model))
