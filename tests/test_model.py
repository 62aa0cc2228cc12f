"""Parameters and FLOP of a transformer: by hand, by published total, by counting."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given

from commwall.model import Model
from commwall.simulators.block import random_weights
from samples import LLAMA_70B, MIXTRAL, NOT_COUNTS, gpt, models

TINY = Model(2, 8, 2, 2, 32, 100, 16, gated_mlp=False, tied_embeddings=True)
LLAMA = {"gated_mlp": True, "tied_embeddings": False}
QWEN = {**LLAMA, "qkv_bias": True}
GPT2 = {"gated_mlp": False, "tied_embeddings": True, "biases": True,
        "learned_positions": True}  # fmt: skip
SIZES = ["layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "seq", "head_dim"]
SPARSE = ["experts", "top_k", "moe_ffn"]

# layers, hidden, heads, kv_heads, ffn, vocab, seq, the rest, counted by the publisher
EXACT = [
    ((12, 768, 12, 12, 3072, 50257, 1024), GPT2, 124_439_808),
    ((32, 4096, 32, 32, 11008, 32000, 4096), LLAMA, 6_738_415_616),
    ((40, 5120, 40, 40, 13824, 32000, 4096), LLAMA, 13_015_864_320),
    ((80, 8192, 64, 8, 28672, 32000, 4096), LLAMA, 68_976_648_192),
    ((32, 4096, 32, 8, 14336, 128256, 8192), LLAMA, 8_030_261_248),
    ((80, 8192, 64, 8, 28672, 128256, 8192), LLAMA, 70_553_706_496),
    ((28, 3584, 28, 4, 18944, 152064, 131072), QWEN, 7_615_616_512),
    ((80, 8192, 64, 8, 29568, 152064, 131072), QWEN, 72_706_203_648),
]
# the same, but rounded by the publisher
ROUNDED = [
    (gpt(96, 12288, 96, 2048, vocab=50257), 175e9),
    (gpt(36, 4096, 32, 2048), 7.5e9),
    (gpt(48, 8192, 64, 2048), 39.1e9),
    (gpt(80, 12288, 96, 2048), 145.6e9),
    (gpt(128, 25600, 160, 2048), 1008e9),
    (Model(126, 16384, 128, 8, 53248, 128256, 131072, **LLAMA), 405.85e9),
]


@pytest.mark.parametrize(("sizes", "rest", "published"), EXACT)
def test_parameters_are_exactly_the_published_total(sizes, rest, published):
    assert Model(*sizes, **rest).params == published


@pytest.mark.parametrize(("model", "published"), ROUNDED)
def test_parameters_are_within_a_percent_of_a_rounded_total(model, published):
    assert model.params == pytest.approx(published, rel=0.012)


def test_mixtral_stores_47_billion_and_uses_13():
    assert MIXTRAL.params == 46_702_792_704
    assert MIXTRAL.active_params == pytest.approx(12.88e9, rel=1e-3)


def test_megatron_1_7_billion_is_three_percent_smaller_than_its_name():
    """2304 wide and 24 deep is 1.652e9; 1.7 was rounded up."""
    assert gpt(24, 2304, 24, 2048).params / 1.7e9 - 1 == pytest.approx(-0.028, abs=5e-4)


def test_one_llama_layer_by_hand():
    """q and o 8192^2 each, k and v 8192 x 1024, three of 8192 x 28672, two norms."""
    layer = 2 * 8192**2 + 2 * 8192 * 1024 + 3 * 8192 * 28672 + 2 * 8192

    assert layer == 855_654_400
    assert LLAMA_70B.params == 80 * layer + 2 * 32000 * 8192 + 8192


def test_parameters_are_the_sizes_of_the_arrays_of_a_block():
    sizes = {"hidden": 24, "heads": 6, "kv_heads": 2, "head_dim": 5, "ffn": 40}
    arrays = random_weights(np.random.default_rng(0), **sizes)
    model = Model(1, 24, 6, 2, 40, 7, 3, head_dim=5, **LLAMA)

    ends = 2 * 7 * 24 + 24
    assert model.params == sum(array.size for array in arrays.values()) + ends


def test_a_tiny_mixture_of_experts_by_hand():
    """3 layers, the first dense: 4 experts and a shared one, two visited, 6 wide."""
    model = Model(3, 8, 2, 1, 10, 20, 16, experts=4, shared_experts=1, top_k=2,
                  moe_ffn=6, dense_layers=1, **LLAMA)  # fmt: skip
    attention = 2 * 8 * 8 + 2 * 8 * 4
    expert, dense, router = 3 * 8 * 6, 3 * 8 * 10, 8 * 4

    ends = 2 * 20 * 8 + 8
    layers = 3 * (attention + 2 * 8) + dense + 2 * (router + 5 * expert)
    assert model.params == layers + ends
    assert model.active_params == model.params - 2 * 2 * expert
    assert (
        model.matmul_params == 3 * attention + dense + 2 * (router + 3 * expert) + 160
    )


def test_biases_by_hand():
    """q, k, v: 8 + 4 + 4; o and down: 8 each; gate and up: 10 each; three norms: 8."""
    plain = Model(1, 8, 2, 1, 10, 20, 16, **LLAMA)

    qkv = replace(plain, qkv_bias=True)
    assert qkv.params - plain.params == 8 + 4 + 4
    everywhere = replace(plain, biases=True)
    assert everywhere.params - plain.params == 16 + 8 + 10 + 10 + 8 + 3 * 8
    assert everywhere.flop_per_token == plain.flop_per_token


def test_flop_per_token_by_hand():
    """Each weight 2 FLOP forward and 4 backward; a token sees half of 16 others."""
    weights = 2 * (4 * 8 * 8 + 2 * 8 * 32) + 100 * 8
    scores_and_mix = 2 * (2 * 8 * 16 + 2 * 8 * 16) // 2

    assert TINY.flop_per_token == 6 * weights + 3 * scores_and_mix
    assert TINY.flop_per_token_full_attention == 6 * weights + 6 * scores_and_mix


@pytest.mark.parametrize(
    ("layers", "hidden", "heads"), [(48, 6144, 64), (105, 20480, 128)]
)
def test_flop_match_the_formula_of_narayanan_2021_and_korthikanti_2022(
    layers, hidden, heads
):
    """72 B L s h^2 (1 + s / 6h + V / 12Lh), the whole square of attention counted."""
    s, v = 2048, 51200
    bracket = 1 + s / (6 * hidden) + v / (12 * layers * hidden)
    published = 72 * layers * hidden**2 * bracket

    model = gpt(layers, hidden, heads, s)
    assert model.flop_per_token_full_attention == pytest.approx(published, rel=1e-12)


@pytest.mark.parametrize(
    ("layers", "hidden", "heads", "batch", "gpus", "seconds", "mfu"),
    [
        (48, 6144, 64, 4, 8, 1.10, 0.415),
        (96, 12288, 96, 64, 64, 13.75, 0.514),
        (105, 20480, 128, 280, 280, 37.83, 0.560),
        (128, 25600, 160, 512, 512, 71.49, 0.563),
    ],
)
def test_measured_seconds_give_the_utilisation_that_korthikanti_2022_prints(
    layers, hidden, heads, batch, gpus, seconds, mfu
):
    """Table 5, A100s of 312 TFLOP/s: a check of our FLOP against somebody else's."""
    model = gpt(layers, hidden, heads, 2048)
    flop = batch * model.seq * model.flop_per_token_full_attention

    assert flop / (seconds * gpus * 312e12) == pytest.approx(mfu, abs=2.5e-3)


def test_an_activation_of_llama_70b_is_67_megabytes():
    assert LLAMA_70B.activation(1) == 4096 * 8192 * 2 == 67_108_864
    assert LLAMA_70B.activation(8, bytes_per_value=4) == 16 * 67_108_864


@given(model=models())
def test_no_token_meets_more_than_all_parameters(model):
    assert 0 < model.active_params <= model.params
    assert model.matmul_params < model.active_params + model.vocab * model.hidden
    assert 0 < model.flop_per_token < model.flop_per_token_full_attention


@given(model=models())
def test_more_of_anything_is_more_parameters(model):
    for field in ("ffn", "vocab", "moe_ffn"):
        wider = replace(model, **{field: 2 * getattr(model, field)})
        assert wider.params >= model.params
    untied = replace(model, tied_embeddings=False)
    tied = replace(model, tied_embeddings=True)
    assert untied.params - tied.params == model.vocab * model.hidden


@given(model=models())
def test_numpy_integers_count_as_whole_numbers_and_never_overflow(model):
    """As int32 the product of three sizes would silently wrap round."""
    sizes = {field: np.int32(getattr(model, field)) for field in SIZES}

    assert replace(model, **sizes) == model
    assert replace(model, **sizes).params == model.params


@pytest.mark.parametrize("value", NOT_COUNTS, ids=repr)
@pytest.mark.parametrize("field", SIZES + SPARSE)
def test_what_is_not_a_count_is_refused(field, value):
    if value is None and field in ("head_dim", "moe_ffn"):
        assert replace(TINY, **{field: value})  # the default
        return
    with pytest.raises(ValueError, match=rf"^{field}=.*nearest legal value"):
        replace(TINY, **{field: value})


@pytest.mark.parametrize("value", ["no", "0", 1, None, 2.0])
@pytest.mark.parametrize("field", ["gated_mlp", "tied_embeddings", "biases", "dropout"])
def test_a_word_is_not_a_yes_or_no(field, value):
    with pytest.raises(ValueError, match=f"^{field}=.*must be True or False"):
        replace(TINY, **{field: value})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"heads": 12, "kv_heads": 8},
            r"heads=12 is not a multiple of kv_heads=8; .*8, 16",
        ),
        (
            {"heads": 3, "kv_heads": 3, "head_dim": None},
            r"heads=3 must divide hidden=8;",
        ),
        ({"top_k": 3}, "top_k=3 must be at most experts=1; nearest legal value: 1"),
        ({"dense_layers": 3}, "dense_layers=3 must be at most layers=2; .*value: 2"),
        ({"dense_layers": -1}, "dense_layers=-1 must be a whole number"),
        ({"shared_experts": -1}, "shared_experts=-1 must be a whole number"),
    ],
)
def test_shapes_that_do_not_divide_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        replace(TINY, **fields)


def test_a_what_if_follows_its_defaults():
    """Half the layers, twice the width: head size and dense layers go along."""
    thin = replace(LLAMA_70B, layers=40, hidden=4096, ffn=1000)

    assert (thin.head_dim, thin.dense_layers, thin.moe_ffn) == (64, 40, 1000)
    assert thin == Model(40, 4096, 64, 8, 1000, 32000, 4096, **LLAMA)
    assert replace(LLAMA_70B, experts=8).dense_layers == 0
    given = replace(LLAMA_70B, head_dim=96)
    assert replace(given, hidden=4096).head_dim == 96


def test_a_model_does_not_change():
    with pytest.raises(FrozenInstanceError):
        TINY.layers = 3
