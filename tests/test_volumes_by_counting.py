"""Every formula for bytes and steps beside a count of arrays that really moved.

The simulators move float64, so plans here keep and send eight bytes a value.
"""

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from commwall.collectives import (
    all_gather_bytes,
    all_gather_time,
    all_reduce_bytes,
    all_reduce_time,
    all_to_all_bytes,
    all_to_all_time,
    broadcast_time,
    hierarchical_all_reduce_time,
    reduce_scatter_bytes,
    reduce_scatter_time,
    send_time,
)
from commwall.hardware import Link
from commwall.memory import layer_activations
from commwall.model import Model
from commwall.plan import Plan, Precision
from commwall.simulators.block import block, random_weights
from commwall.simulators.context import (
    blocks,
    ring_attention,
    ring_attention_gradients,
    ulysses_attention,
    ulysses_attention_gradients,
)
from commwall.simulators.counting import (
    all_to_all,
    hierarchical_all_reduce,
    in_network_all_reduce,
    ring_all_gather,
    ring_all_reduce,
    ring_broadcast,
    ring_reduce_scatter,
    send,
)
from commwall.simulators.experts import ExpertParallel, balanced_choices
from commwall.simulators.sharded import shard, tensor_parallel
from commwall.simulators.stacks import data_parallel, pipeline_parallel
from commwall.simulators.trees import tree_all_reduce
from commwall.simulators.zero import Zero
from commwall.volumes import held_params, volumes

FLOAT64 = Precision(weights=8, gradients=8, activations=8)
ONE_SECOND_A_HOP = Link(
    name="hops", bandwidth=inf, latency=1, source="test", in_network=inf
)
ONE_SECOND_A_BYTE = Link(
    name="bytes", bandwidth=1, latency=0, source="test", in_network=1
)
LAYERS, BATCH, SEQ, HIDDEN, HEAD_DIM = 4, 8, 16, 24, 4
HEADS, KV_HEADS, FFN = 16, 8, 32
SHAPE = {"hidden": HIDDEN, "heads": HEADS, "kv_heads": KV_HEADS, "head_dim": HEAD_DIM,
         "ffn": FFN}  # fmt: skip
MODEL = Model(LAYERS, HIDDEN, HEADS, KV_HEADS, FFN, 48, SEQ, head_dim=HEAD_DIM,
              gated_mlp=True, tied_embeddings=False)  # fmt: skip
RNG = np.random.default_rng(0)
SIZE = 5040  # divides by 1 to 10

COLLECTIVES = [
    (ring_all_reduce, all_reduce_time, all_reduce_bytes),
    (ring_reduce_scatter, reduce_scatter_time, reduce_scatter_bytes),
    (all_to_all, all_to_all_time, all_to_all_bytes),
]


def buffers(ranks, size=SIZE):
    return [RNG.integers(0, 9, size).astype(float) for _ in range(ranks)]


def only(values):
    """The one value that all ranks agree on."""
    assert len(set(values)) == 1
    return values[0]


def forward_again(wire_of_forward, wire, recompute):
    """Bytes a rank sent, those of the forward pass twice under full recomputation."""
    return only(wire.sent) + (recompute == "full") * only(wire_of_forward.sent)


@pytest.mark.parametrize("ranks", range(1, 11))
@pytest.mark.parametrize(("collective", "seconds", "sent"), COLLECTIVES)
def test_a_ring_sends_the_bytes_and_takes_the_steps_of_the_formula(
    collective, seconds, sent, ranks
):
    _, wire = collective(buffers(ranks))

    assert only(wire.sent) == pytest.approx(sent(8 * SIZE, ranks))
    assert wire.steps == seconds(8 * SIZE, ranks, ONE_SECOND_A_HOP)
    assert only(wire.sent) == pytest.approx(seconds(8 * SIZE, ranks, ONE_SECOND_A_BYTE))


@pytest.mark.parametrize("ranks", range(1, 11))
def test_the_payload_of_an_all_gather_is_what_comes_out(ranks):
    results, wire = ring_all_gather(buffers(ranks, SIZE // ranks))
    payload = results[0].nbytes

    assert only(wire.sent) == pytest.approx(all_gather_bytes(payload, ranks))
    assert wire.steps == all_gather_time(payload, ranks, ONE_SECOND_A_HOP)
    assert only(wire.sent) == pytest.approx(
        all_gather_time(payload, ranks, ONE_SECOND_A_BYTE)
    )


@pytest.mark.parametrize("ranks", [*range(1, 18), 31, 32, 33, 64])
def test_the_busiest_rank_of_two_trees_sends_what_the_formula_says(ranks):
    """S with two ranks, 1.5 S with three and 2 S from four on; 2 log2 n steps."""
    _, wire = tree_all_reduce(buffers(ranks))

    assert wire.steps == all_reduce_time(0, ranks, ONE_SECOND_A_HOP, "tree")
    seconds = all_reduce_time(8 * SIZE, ranks, ONE_SECOND_A_BYTE, "tree")
    assert wire.busiest == pytest.approx(seconds)


@pytest.mark.parametrize("ranks", [1, 2, 3, 8, 16])
def test_a_switch_that_adds_is_sent_one_payload_in_two_steps(ranks):
    _, wire = in_network_all_reduce(buffers(ranks))

    assert wire.steps == all_reduce_time(0, ranks, ONE_SECOND_A_HOP, "in_network")
    seconds = all_reduce_time(8 * SIZE, ranks, ONE_SECOND_A_BYTE, "in_network")
    assert only(wire.sent) == seconds


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_a_chain_in_ever_smaller_pieces_tends_to_the_broadcast_of_the_formula(ranks):
    """k pieces take n - 2 + k steps of S/k bytes: (n - 2 + k)/k S, and S in the end."""
    for pieces in (1, 10, 5040):
        _, wire = ring_broadcast(buffers(ranks), chunks=pieces)
        hops = broadcast_time(0, ranks, ONE_SECOND_A_HOP)
        assert wire.steps == (hops - 1 + pieces if hops else 0)
        assert wire.busiest == broadcast_time(8 * SIZE, ranks, ONE_SECOND_A_BYTE)


@pytest.mark.parametrize("hops", [1, 2, 5])
def test_a_message_is_sent_whole_over_every_hop(hops):
    held = buffers(hops + 1)
    steps = sent = 0
    for here in range(hops):
        held, wire = send(held, here, here + 1)
        steps, sent = steps + wire.steps, sent + wire.busiest

    assert steps == send_time(0, hops + 1, ONE_SECOND_A_HOP)
    assert sent == send_time(8 * SIZE, hops + 1, ONE_SECOND_A_BYTE)


@pytest.mark.parametrize("nodes", [1, 2, 3, 5])
@pytest.mark.parametrize("gpus", [1, 2, 4, 8])
def test_a_hierarchical_all_reduce_keeps_to_its_tiers(nodes, gpus):
    _, wire = hierarchical_all_reduce(buffers(nodes * gpus), gpus)

    def seconds(payload, inner, outer):
        tiers = [(gpus, inner), (nodes, outer)]
        return hierarchical_all_reduce_time(payload, tiers)

    free = replace(ONE_SECOND_A_HOP, latency=0)
    size = 8 * SIZE
    inside, across = wire.inside(gpus), wire.across(gpus)
    assert only(inside.sent) == pytest.approx(seconds(size, ONE_SECOND_A_BYTE, free))
    assert only(across.sent) == pytest.approx(seconds(size, free, ONE_SECOND_A_BYTE))
    assert inside.steps == seconds(size, ONE_SECOND_A_HOP, free)
    assert across.steps == seconds(size, free, ONE_SECOND_A_HOP)


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
@pytest.mark.parametrize("sequence_parallel", [False, True])
@pytest.mark.parametrize("tp", [1, 2, 4, 8])
def test_tensor_parallel_by_counting(tp, sequence_parallel, recompute):
    """One sharded block, times layers and micro-batches; gains of norms left out."""
    weights = random_weights(RNG, **SHAPE)
    x, dout = RNG.normal(size=(2, 2, SEQ, HIDDEN))
    calls = tensor_parallel(x, dout, weights, HEAD_DIM, tp, sequence_parallel).calls
    plan = Plan(tp=tp, micro_batch=2, global_batch=6, recompute=recompute,
                sequence_parallel=sequence_parallel, precision=FLOAT64)  # fmt: skip

    counted = sum(
        only(call.wire.sent) * (2 if again else 1)
        for call in calls
        if "norm" not in call.name
        for again in [recompute == "full" and call.name.startswith("forward")]
    )
    assert volumes(MODEL, plan)["tp"] == pytest.approx(3 * LAYERS * counted)


@pytest.mark.parametrize("tp", [1, 2, 4, 8])
def test_parameters_of_a_tensor_parallel_rank_by_counting(tp):
    shards = shard(random_weights(RNG, **SHAPE), tp, HEAD_DIM)
    counted = only([sum(array.size for array in mine.values()) for mine in shards])

    held, _ = held_params(MODEL, Plan(tp=tp, pp=LAYERS), "interior")
    assert held == counted


@pytest.mark.parametrize("micro_batches", [1, 2, 4])
@pytest.mark.parametrize("pp", [1, 4])
def test_pipeline_parallel_by_counting(pp, micro_batches):
    """What an interior stage sends; the ends send half, having one neighbour each."""
    stack = [random_weights(RNG, **SHAPE) for _ in range(LAYERS)]
    x, target = RNG.normal(size=(2, BATCH, SEQ, HIDDEN))
    _, wire = pipeline_parallel(x, target, stack, HEAD_DIM, pp, micro_batches)
    plan = Plan(pp=pp, micro_batch=BATCH // micro_batches, global_batch=BATCH,
                precision=FLOAT64)  # fmt: skip

    sent = volumes(MODEL, plan)["pp"]
    assert sent == wire.busiest
    if pp > 1:
        assert wire.sent == [sent / 2, *[sent] * (pp - 2), sent / 2]


@pytest.mark.parametrize("dp", [1, 2, 4, 8])
def test_data_parallel_by_counting(dp):
    """Real gradients of a stack of blocks, which is what an interior stage holds."""
    stack = [random_weights(RNG, **SHAPE) for _ in range(2)]
    x, target = RNG.normal(size=(2, BATCH, SEQ, HIDDEN))
    _, wire = data_parallel(x, target, stack, HEAD_DIM, dp)
    plan = Plan(dp=dp, pp=2, global_batch=BATCH, precision=FLOAT64)

    assert volumes(MODEL, plan)["dp"] == pytest.approx(only(wire.sent))


class Anything:
    """A trainable that has a gradient for any parameters: half their squared length."""

    def forward(self, params, batch):
        return (params * batch,)

    def backward(self, params, saved):
        return saved[0]


@pytest.mark.parametrize("micro_batches", [1, 3])
@pytest.mark.parametrize("dp", [1, 2, 4, 9])
@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_zero_by_counting(stage, dp, micro_batches):
    """As many parameters as the tiny model has, trained for one step."""
    tiny = Model(2, 8, 2, 2, 32, 100, 16, gated_mlp=False, tied_embeddings=True)
    training = Zero.start(stage, Anything(), RNG.normal(size=tiny.params), dp)
    training.step([[1.0] * micro_batches] * dp)
    plan = Plan(dp=dp, zero_stage=stage, global_batch=dp * micro_batches,
                precision=FLOAT64)  # fmt: skip

    assert tiny.params == 66 * 36  # a multiple of every dp here
    counted = only(training.ledger.total.sent)
    assert volumes(tiny, plan)["dp"] == pytest.approx(counted)


def attention_inputs(ranks):
    shapes = [(1, n, SEQ, HEAD_DIM) for n in (HEADS, KV_HEADS, KV_HEADS, HEADS)]
    return [blocks(RNG.normal(size=shape), ranks) for shape in shapes]


@pytest.mark.parametrize("recompute", ["none", "full"])
@pytest.mark.parametrize("cp", [1, 2, 4, 8])
def test_ring_attention_by_counting(cp, recompute):
    q, k, v, dout = attention_inputs(cp)
    out, log_mass, there = ring_attention(q, k, v)
    _, back = ring_attention_gradients(dout, q, k, v, out, log_mass)
    plan = Plan(cp=cp, global_batch=3, recompute=recompute, precision=FLOAT64)

    counted = forward_again(there, there + back, recompute)
    assert volumes(MODEL, plan)["cp"] == pytest.approx(3 * LAYERS * counted)


@pytest.mark.parametrize("recompute", ["none", "full"])
@pytest.mark.parametrize("cp", [1, 2, 4, 8])
def test_ulysses_by_counting(cp, recompute):
    q, k, v, dout = attention_inputs(cp)
    _, saved, there = ulysses_attention(q, k, v)
    _, back = ulysses_attention_gradients(dout, saved)
    plan = Plan(cp=cp, global_batch=3, recompute=recompute, context="ulysses",
                precision=FLOAT64)  # fmt: skip

    counted = forward_again(there, there + back, recompute)
    assert volumes(MODEL, plan)["cp"] == pytest.approx(3 * LAYERS * counted)


@pytest.mark.parametrize("recompute", ["none", "full"])
@pytest.mark.parametrize("top_k", [1, 2])
@pytest.mark.parametrize("ep", [1, 2, 4, 8])
def test_expert_parallel_by_counting(ep, top_k, recompute):
    """Evenly routed tokens of one micro-batch a rank; MoE in every layer but one."""
    sparse = replace(MODEL, experts=8, top_k=top_k, dense_layers=1)
    choices = [balanced_choices(SEQ, 8, top_k) for _ in range(ep)]
    gates = [RNG.random((SEQ, top_k)) for _ in range(ep)]
    weights = np.split(RNG.normal(size=(8, HIDDEN, HIDDEN)), ep)
    layer = ExpertParallel(weights, choices, gates)
    x, dout = RNG.normal(size=(2, ep, SEQ, HIDDEN))
    _, there, back = layer.forward(list(x))
    *_, there_again, back_again = layer.backward(list(dout))
    plan = Plan(
        ep=ep, dp=ep, global_batch=3 * ep, recompute=recompute, precision=FLOAT64
    )

    forward = there + back
    counted = forward_again(forward, forward + there_again + back_again, recompute)
    assert volumes(sparse, plan)["ep"] == pytest.approx(3 * (LAYERS - 1) * counted)


def test_activations_that_a_block_keeps_by_counting():
    """All it keeps, but the sigmoid that `gate` gives back, and two scales a token."""
    x = RNG.normal(size=(2, SEQ, HIDDEN))
    _, (norm1, first, norm2, second) = block(x, random_weights(RNG, **SHAPE), HEAD_DIM)
    sigmoid = second[3]
    kept = [norm1[0], norm2[0], *first, *second]
    counted = sum(array.nbytes for array in kept) - sigmoid.nbytes

    plan = Plan(micro_batch=2, global_batch=2, precision=FLOAT64,
                fused_attention=False, fused_kernels=True)  # fmt: skip
    assert layer_activations(MODEL, plan) == counted
