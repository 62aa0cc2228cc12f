"""Encoded bytes, residuals, seconds, and what compression does to a training.

Losses are compared within margins that held for three seeds; the numbers of a run are
not asserted. All curves are at each scheme's own best rate unless a test says so.
"""

from dataclasses import replace
from functools import cache
from math import inf, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commwall import catalog
from commwall.compression import (
    SCHEMES,
    BFloat16,
    Codec,
    Int8,
    LowRank,
    Scheme,
    Sign,
    TopK,
    break_even_bandwidth,
    codec_time,
    encoded,
    gradient_shapes,
    memory_traffic,
    sent,
    step_cost,
    wire_time,
)
from commwall.compression.encoders import encode, factors, first_factor, rounded
from commwall.compression.exchange import Channel
from commwall.compression.language import Network, Source
from commwall.compression.training import RATES, Recipe, train
from commwall.hardware import Link

NAMED = {scheme.name: scheme for scheme in SCHEMES}
CODECS = [Codec(), BFloat16(), Int8(), Sign(), TopK(0.01), TopK(0.3)]
FEEDBACK = [scheme for scheme in SCHEMES if scheme.feedback]
WIRE = Link(name="wire", bandwidth=1e9, latency=1e-5, source="example")
GPU = catalog.RTX_4090

shapes = st.lists(st.integers(1, 12), min_size=1, max_size=3).map(tuple)
seeds = st.integers(0, 2**32 - 1)


def values(seed, *shape):
    """Gradients of unequal size, some of them zero."""
    rng = np.random.default_rng(seed)
    drawn = rng.normal(size=shape) * np.exp(rng.normal(size=shape))
    return (drawn * (rng.random(shape) < 0.8)).astype(np.float32)


def lost(codec, tensor):
    """Share of the squared length that encoding loses."""
    length = float((tensor**2).sum())
    return float(((rounded(codec, tensor) - tensor) ** 2).sum()) / (length or 1)


# ---- bytes ---------------------------------------------------------------------------


@given(shape=shapes, seed=seeds)
@pytest.mark.parametrize("codec", CODECS, ids=str)
def test_a_rank_sends_the_bytes_that_are_counted(codec, shape, seed):
    parts = encode(codec, values(seed, 3, *shape))

    assert sum(part.nbytes for part in parts) == 3 * codec.encoded(shape)


@given(rows=st.integers(1, 30), columns=st.integers(1, 30), rank=st.integers(1, 4))
def test_factors_have_the_bytes_that_are_counted(rows, columns, rank):
    codec, matrices = LowRank(rank), values(0, 2, rows, columns)
    if codec.factored((rows, columns)):
        sides = factors(matrices, first_factor(codec, (rows, columns)))
        assert sum(side.nbytes for side in sides) == codec.encoded((rows, columns))
    else:
        assert codec.encoded((rows, columns)) == 4 * rows * columns


def test_one_bit_gathered_from_all_beats_bf16_up_to_32_ranks():
    """(n - 1) / 8 against 2 (n - 1) / n * 2: equal at 32, whatever the size."""
    bits = Scheme("", codec=Sign(), collective="all_gather")
    ring, size = NAMED["bf16"], [(2**15, 2**15)]

    assert sent(bits, size, 32) == pytest.approx(sent(ring, size, 32), rel=1e-6)
    assert sent(bits, size, 31) < sent(ring, size, 31)
    assert sent(bits, size, 33) > sent(ring, size, 33)
    assert sent(NAMED["1 bit"], size, 256) / 2**30 == pytest.approx(0.249, abs=1e-3)


def test_the_places_of_the_largest_cost_more_than_all_values_for_many_ranks():
    """(n - 1) 8 k against 2 (n - 1) / n 4 P: equal at 100 ranks for k = P / 100."""
    size = [(10_000, 10_000)]

    assert sent(NAMED["top 1 %"], size, 100) == sent(NAMED["fp32"], size, 100)
    assert sent(NAMED["top 1 %"], size, 8) < sent(NAMED["fp32"], size, 8) / 12


def test_steps_without_a_message_divide_the_bytes_and_lateness_saves_none():
    size = [(1000, 1000)]

    assert 32 * sent(NAMED["local 32"], size, 8) == sent(NAMED["fp32"], size, 8)
    assert sent(NAMED["DiLoCo 32"], size, 8) == sent(NAMED["local 32"], size, 8)
    assert sent(NAMED["late 16"], size, 8) == sent(NAMED["fp32"], size, 8)


RESNET_18 = [
    (64, 27), *[(64, 576)] * 4,
    (128, 576), *[(128, 1152)] * 3, (128, 64),
    (256, 1152), *[(256, 2304)] * 3, (256, 128),
    (512, 2304), *[(512, 4608)] * 3, (512, 256),
    (10, 512), (9610,),
]  # fmt: skip
LSTM = [(28869, 650), *[(2600, 650)] * 6, (28869 + 6 * 2600,)]


@pytest.mark.parametrize(
    ("model", "steps", "published"),
    [(RESNET_18, 24, [1023, 4, 8, 14]), (LSTM, 70, [7730, 25, 38, 64])],
    ids=["ResNet-18", "LSTM"],
)
def test_data_of_an_epoch_as_vogels_2019_prints_it(model, steps, published):
    """Tables 3 and 4: fp32 and ranks 1, 2, 4, in MB of 2**20; biases are sent whole."""
    names = ["fp32", "rank 1", "rank 2", "rank 4"]
    found = [steps * encoded(NAMED[name], model) / 2**20 for name in names]

    assert found == pytest.approx(published, abs=0.5, rel=1e-3)


@pytest.mark.parametrize("name", catalog.model_names())
def test_shapes_hold_all_parameters(name):
    model = catalog.model(name)

    assert sum(map(prod, gradient_shapes(model))) == model.params


# ---- what encoding keeps -------------------------------------------------------------


@given(shape=shapes, seed=seeds)
@pytest.mark.parametrize("codec", CODECS, ids=str)
def test_encoding_never_loses_more_than_there_is(codec, shape, seed):
    """The contract that error feedback rests on: less than all is lost."""
    tensor = values(seed, 1, *shape)
    kept = {
        Sign: np.abs(tensor).sum() ** 2 / tensor.size / ((tensor**2).sum() or 1),
        TopK: codec.kept(shape) / tensor.size if isinstance(codec, TopK) else 0,
    }.get(type(codec), 0.99)

    assert lost(codec, tensor) <= 1 - kept + 1e-6 or not tensor.any()


def test_bf16_rounds_to_the_nearest_of_256_steps():
    tensor = values(1, 1, 1000)
    error = np.abs(rounded(BFloat16(), tensor) - tensor)

    assert (error <= np.abs(tensor) * 2**-8).all()
    assert rounded(BFloat16(), np.float32([[1 + 2**-8, 1 + 3 * 2**-8]])).tolist() == [
        [1.0, 1 + 2**-6]
    ]  # ties go to even


def test_int8_is_off_by_half_a_step_at_most():
    tensor = values(1, 1, 1000)
    step = np.abs(tensor).max() / 127

    assert np.abs(rounded(Int8(), tensor) - tensor).max() <= step * 0.5001


def test_the_largest_arrive_as_they_are_and_the_rest_not_at_all():
    tensor = values(1, 2, 40, 25)
    read = rounded(TopK(0.01), tensor)

    for before, after in zip(tensor, read, strict=True):
        arrived = after != 0
        assert arrived.sum() == 10
        assert (after[arrived] == before[arrived]).all()
        assert np.abs(before[arrived]).min() >= np.abs(before[~arrived]).max()


def test_factors_find_a_matrix_of_their_own_rank():
    """At once, for the first product already spans its columns."""
    thin, wide = values(1, 40, 3), values(2, 3, 30)
    left, right = factors((thin @ wide)[None], first_factor(LowRank(3), (40, 30)))

    assert left @ right.T == pytest.approx(thin @ wide, rel=1e-3, abs=1e-3)


def test_a_warm_start_comes_nearer_with_every_step():
    """Power iteration goes on from step to step, as if the matrix stood still."""
    matrix = values(3, 1, 40, 30).astype(float)
    channel = Channel(Scheme("", codec=LowRank(2)), (40, 30))
    errors = [((channel.mean(matrix) - matrix[0]) ** 2).sum() for _ in range(30)]
    spectrum = np.linalg.svd(matrix[0], compute_uv=False)

    assert errors == sorted(errors, reverse=True)
    assert errors[-1] == pytest.approx((spectrum[2:] ** 2).sum(), rel=0.02)


# ---- error feedback ------------------------------------------------------------------


@pytest.mark.parametrize("codec", [Int8(), Sign(), TopK(0.01), LowRank(1)], ids=str)
@pytest.mark.parametrize("shape", [(20, 15), (50,)], ids=str)
def test_with_feedback_delivered_and_waiting_are_all_that_was_sent(codec, shape):
    channel = Channel(Scheme("", codec=codec, feedback=True), shape)
    steps = [values(seed, 4, *shape).astype(float) for seed in range(20)]

    delivered = sum(channel.mean(step) for step in steps)
    true = sum(step.mean(axis=0) for step in steps)
    assert delivered + channel.waiting == pytest.approx(true, abs=1e-12)


def test_without_feedback_what_was_lost_is_lost():
    channel = Channel(NAMED["top 1 %"], (100,))
    steady = np.linspace(1, 2, 100)[None]
    delivered = sum(channel.mean(steady) for _ in range(100))

    assert (delivered != 0).sum() == 1
    assert not np.any(channel.waiting)


def test_with_feedback_every_value_has_its_turn():
    channel = Channel(NAMED["top 1 %, feedback"], (100,))
    steady = np.linspace(1, 2, 100)[None]
    delivered = sum(channel.mean(steady) for _ in range(500))

    assert (delivered != 0).all()


# ---- seconds -------------------------------------------------------------------------


GRADIENT = gradient_shapes(catalog.LLAMA2_7B)


@given(
    ranks=st.integers(2, 512),
    latency=st.sampled_from([0.0, 1e-6, 1e-4]),
    slowdown=st.floats(0.5, 50),
)
@pytest.mark.parametrize("name", ["int8", "1 bit, feedback", "top 1 %", "rank 4"])
def test_break_even_bandwidth_makes_both_equal(name, ranks, latency, slowdown):
    scheme, rival = NAMED[name], NAMED["bf16"]
    found = break_even_bandwidth(scheme, rival, GRADIENT, ranks, GPU, latency, slowdown)

    def seconds(one, bandwidth):
        link = replace(WIRE, bandwidth=bandwidth, latency=latency)
        return step_cost(one, 1.0, GRADIENT, ranks, link, GPU, slowdown=slowdown).total

    if not 0 < found < inf:
        return
    assert seconds(scheme, found) == pytest.approx(seconds(rival, found), rel=1e-9)
    assert seconds(scheme, found / 2) < seconds(rival, found / 2)
    assert seconds(scheme, found * 2) > seconds(rival, found * 2)


def test_ends_of_the_break_even():
    """Local steps cost nothing more and always pay; a late message never saves."""
    assert (
        break_even_bandwidth(NAMED["local 8"], NAMED["fp32"], GRADIENT, 8, GPU) == inf
    )
    assert break_even_bandwidth(NAMED["late 4"], NAMED["fp32"], GRADIENT, 8, GPU) == 0
    many = break_even_bandwidth(NAMED["top 1 %"], NAMED["fp32"], GRADIENT, 256, GPU)
    assert many == 0


def test_slower_encoding_needs_a_slower_link():
    fast, slow = (
        break_even_bandwidth(
            NAMED["rank 4"], NAMED["bf16"], GRADIENT, 8, GPU, slowdown=s
        )
        for s in (1, 20)
    )

    assert slow == pytest.approx(fast / 20)


def test_memory_traffic_by_hand():
    """1 bit of 8,000 values, 4 ranks: 2 scans of 4, 1,004 bytes out, in and back."""
    out = 2 * 4 * 8_000 + 1_004
    middle = 1_004 + (1_004 + 4 * 8_000) / 4
    back = 1_004 + 4 * 8_000
    bare = memory_traffic(NAMED["1 bit"], [(8_000,)], 4)

    assert bare == out + middle + back
    fed = memory_traffic(NAMED["1 bit, feedback"], [(8_000,)], 4)
    assert fed - bare == 12 * 8_000 + 12 * 8_000 / 4
    assert memory_traffic(NAMED["bf16"], [(8_000,)], 4) == 0


def test_one_rank_neither_encodes_nor_sends():
    for scheme in SCHEMES:
        cost = step_cost(scheme, 1.0, GRADIENT, 1, WIRE, GPU)
        assert (cost.total, cost.sent) == (1.0, 0.0)


def test_low_rank_waits_for_two_collectives():
    still = replace(WIRE, bandwidth=inf)

    assert wire_time(NAMED["rank 1"], GRADIENT, 8, still) == pytest.approx(28e-5)
    assert wire_time(NAMED["fp32"], GRADIENT, 8, still) == pytest.approx(14e-5)


def test_late_messages_hide_behind_the_step_and_no_further():
    wire = wire_time(NAMED["fp32"], GRADIENT, 8, WIRE)

    for name in ("late 1", "late 16"):
        short = step_cost(NAMED[name], wire / 3, GRADIENT, 8, WIRE, GPU)
        long = step_cost(NAMED[name], wire * 2, GRADIENT, 8, WIRE, GPU)
        assert short.total == pytest.approx(wire)
        assert long.total == pytest.approx(wire * 2)


def test_codec_time_of_a_7b_gradient_on_a_4090():
    """(8 + 12 + 4 + 1.5) bytes for 6.74e9 values at 0.85 of 1,008 GB/s: 0.2 s."""
    seconds = codec_time(NAMED["1 bit, feedback"], GRADIENT, 8, GPU)

    assert seconds == pytest.approx(0.2, rel=0.1)


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: TopK(0), "^fraction=0 must be a number above 0"),
        (lambda: TopK(2), "^fraction=2 must be at most 1"),
        (lambda: LowRank(0), "^rank=0 must be a whole number of at least 1"),
        (lambda: Scheme("", every=0), "^every=0"),
        (lambda: Scheme("", every=2, delay=1), "^delay=1 must be 0 with every=2"),
        (
            lambda: Scheme("", codec=Sign(), collective="all_reduce"),
            "^collective='all_reduce' cannot sum",
        ),
        (lambda: Scheme("", codec="1 bit"), "^codec='1 bit' must be a Codec"),
        (lambda: train(Scheme("fp16")), "^scheme='fp16' must be one of"),
    ],
)
def test_a_slip_is_named(make, rule):
    with pytest.raises(ValueError, match=rule):
        make()


# ---- the task ------------------------------------------------------------------------


SMALL = Network(words=5, width=3, hidden=4)
TINY = Source(words=5, features=2)


def doubled(params):
    """The same parameters in double precision."""
    return [p.astype(float) for p in params]


def test_the_gradient_is_that_of_the_loss():
    """The exact loss against its own gradient, all 125 cases in their proportion."""
    params, step = doubled(SMALL.start()), 1e-5
    places = TINY.batch(np.random.default_rng(0), (1, 200_000))
    gradient = SMALL.gradient(params, places)

    for tensor, slope in zip(params, gradient, strict=True):
        place = np.unravel_index(np.abs(slope).argmax(), slope.shape)
        ends = []
        for side in (step, -step):
            kept, tensor[place] = tensor[place], tensor[place] + side
            ends.append(sampled_loss(SMALL, params, places))
            tensor[place] = kept
        assert slope[place] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-4)


def sampled_loss(network, params, batch):
    """Mean loss of one batch, written out word by word."""
    embedding, into, into_offset, outof, outof_offset = (p[0] for p in params)
    before, last, target = (words[0] for words in batch)
    inputs = np.concatenate([embedding[before], embedding[last]], axis=1)
    logits = np.tanh(inputs @ into + into_offset) @ outof + outof_offset
    odds = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return -np.log(odds[np.arange(len(target)), target]).mean()


def test_the_exact_loss_is_what_many_samples_tend_to():
    params = SMALL.start()
    batch = TINY.batch(np.random.default_rng(0), (1, 200_000))

    assert SMALL.loss(params, TINY) == pytest.approx(
        sampled_loss(SMALL, params, batch), rel=0.01
    )


def test_the_mean_of_the_shards_is_the_gradient_of_the_whole_batch():
    network, source = Network(), Source()
    params = network.start()
    shards = source.batch(np.random.default_rng(0), (8, 32))
    whole = [words.reshape(1, -1) for words in shards]

    apart, together = network.gradient(params, shards), network.gradient(params, whole)
    for each, one in zip(apart, together, strict=True):
        assert each.mean(axis=0) == pytest.approx(one[0], abs=1e-6)


def test_no_model_can_beat_the_entropy_and_one_word_alone_tells_less():
    source = Source()
    alone = source.pairs.sum(axis=0)

    assert 0 < source.entropy < -(alone * np.log(alone)).sum() < np.log(source.words)
    assert source.pairs.sum() == pytest.approx(1)
    assert source.pairs.sum(axis=1) == pytest.approx(alone)  # the text stands still
    assert alone.max() > 8 * alone.min()  # a few words are common, most are rare


# ---- the curves ----------------------------------------------------------------------


@cache
def final(name, rate=None):
    """Nats above the floor after 384 steps."""
    recipe = Recipe(rate=RATES[name] if rate is None else rate, sampled=384)
    return train(NAMED[name], recipe).excess[-1]


def test_every_scheme_has_a_rate():
    assert RATES.keys() == NAMED.keys()


def test_a_run_says_what_it_sent_and_comes_out_the_same_again():
    recipe = Recipe(steps=64, rate=1.0)
    first, again = (train(NAMED["local 8"], recipe) for _ in range(2))

    assert first == again
    assert first.sent == sent(NAMED["local 8"], recipe.network.shapes, recipe.ranks)
    assert first.steps == [0, 32, 64]
    assert first.losses == sorted(first.losses, reverse=True)


def test_full_precision_learns_most_of_what_can_be_learnt():
    assert 0.15 < final("fp32") < 0.3


@pytest.mark.parametrize("name", ["bf16", "int8"])
def test_16_and_8_bits_cost_no_loss(name):
    assert final(name) == pytest.approx(final("fp32"), rel=0.02)


@pytest.mark.parametrize("name", ["1 bit", "top 1 %"])
def test_feedback_rescues_what_stalls_without_it(name):
    assert final(name) > 2.5 * final("fp32")
    assert final(f"{name}, feedback") < 0.65 * final(name)
    assert final(f"{name}, feedback") < 2 * final("fp32")


def test_at_a_small_rate_one_bit_with_feedback_follows_fp32():
    """So its price here is the rate that it bears."""
    assert final("1 bit, feedback", 0.25) == pytest.approx(
        final("fp32", 0.25), rel=0.03
    )
    assert final("1 bit", 0.25) > 1.4 * final("fp32", 0.25)


def test_the_best_rate_of_one_scheme_ruins_another():
    rate = RATES["fp32"]

    assert final("1 bit, feedback", rate) > 3 * final("fp32")
    assert final("late 4", rate) > 10 * final("fp32")


def test_more_rank_less_loss():
    losses = [final(name) for name in ("fp32", "rank 4", "rank 2", "rank 1")]

    assert losses == sorted(losses)
    assert final("rank 4") < final("1 bit, feedback")


def test_rare_meetings_cost_little():
    assert final("local 8") == pytest.approx(final("fp32"), rel=0.05)
    assert final("fp32") < final("local 32") < 1.3 * final("fp32")
    assert final("fp32") < final("DiLoCo 32") < 1.5 * final("fp32")


def test_lateness_hurts_though_it_saves_no_byte():
    losses = [final(name) for name in ("fp32", "late 1", "late 4", "late 16")]

    assert losses == sorted(losses)
    assert losses[-1] > 3 * losses[0]


@pytest.mark.parametrize("name", ["fp32", "1 bit, feedback", "local 32"])
def test_a_rate_is_the_best_of_powers_of_two(name):
    best = RATES[name]

    assert final(name) < min(final(name, best / 2), final(name, best * 2))


def test_adam_tells_the_same_story():
    recipe = Recipe(optimizer="adam", rate=0.01, sampled=384)
    names = ["fp32", "rank 4", "1 bit, feedback", "1 bit"]
    losses = [train(NAMED[name], recipe).excess[-1] for name in names]

    assert losses == sorted(losses)
