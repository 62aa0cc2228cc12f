"""Ratios of computing to sending: by hand, by derivation from the other formulas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commwall.balance import (
    bytes_per_flop,
    data_parallel_intensity,
    data_parallel_tokens,
    roofline_rate,
    sync_share,
    tensor_parallel_intensity,
    tensor_parallel_ratio,
)
from commwall.collectives import all_reduce_bytes
from commwall.model import Model
from commwall.plan import Plan
from commwall.volumes import volumes
from samples import LLAMA_70B, NOT_COUNTS, NOT_SIZES

PCIE4 = 16e9 * 16 * 128 / 130 / 8  # one direction
RTX_4090, H100 = 165.2e12, 989.4e12
rates = st.floats(1e9, 1e13)
speeds = st.floats(1e12, 1e16)


@pytest.mark.parametrize(
    ("ranks", "ratio"), [(2, 7.031), (4, 2.344), (8, 1.004), (16, 0.469)]
)
def test_the_articles_one_to_one_by_hand(ranks, ratio):
    """4.5 * 8192 / (n-1) * 31.5e9 / 165.2e12: compute over traffic on RTX 4090s."""
    assert tensor_parallel_ratio(8192, ranks, PCIE4, RTX_4090) == pytest.approx(
        ratio, abs=5e-4
    )


def test_ten_to_one_on_an_rtx_4090_needs_314_gigabytes_a_second():
    assert tensor_parallel_ratio(8192, 8, 313.69e9, RTX_4090) == pytest.approx(
        10, rel=1e-4
    )


@pytest.mark.parametrize(
    ("bandwidth", "gradient_bytes", "tokens"),
    [(24.5e9, 2, 2239), (24.5e9, 4, 4478), (12e9, 2, 4571)],
)
def test_half_the_time_in_gradient_sync_by_hand(bandwidth, gradient_bytes, tokens):
    """256 ranks, half the peak of an RTX 4090: (255/256) * g * 82.6e12 / (3 B)."""
    assert data_parallel_tokens(256, bandwidth, RTX_4090 / 2, gradient_bytes) == (
        pytest.approx(tokens, abs=0.5)
    )


@given(
    half=st.floats(1, 1e6),
    times=st.floats(1e-3, 1e3),
)
def test_sync_share_is_half_at_t_star_and_a_quotient_of_times_elsewhere(half, times):
    """Sync takes as long as computing T* tokens; computing takes T."""
    assert sync_share(half, half) == 0.5
    assert sync_share(times * half, half) == pytest.approx(1 / (1 + times))


def test_bytes_per_flop_by_hand():
    """One direction; in bytes per thousand FLOP an H100 has 0.45, an RTX 4090 0.19."""
    assert 1e3 * bytes_per_flop(450e9, H100) == pytest.approx(0.455, abs=1e-3)
    assert 1e3 * bytes_per_flop(PCIE4, RTX_4090) == pytest.approx(0.191, abs=1e-3)


@given(
    ranks=st.sampled_from([2, 4, 8]),
    bandwidth=rates,
    compute=speeds,
    seq=st.integers(1, 10_000),
    batch=st.integers(1, 8),
)
def test_the_ratio_is_that_of_the_volumes_of_a_layer_of_12_h_squared(
    ranks, bandwidth, compute, seq, batch
):
    """6 FLOP a weight and token over the bytes that `volumes` counts: batch cancels."""
    layer = Model(1, 8192, 64, 64, 32768, 1, seq, gated_mlp=False, tied_embeddings=True)
    plan = Plan(tp=ranks, micro_batch=batch, global_batch=batch)
    tokens = batch * seq

    computing = 6 * 12 * 8192**2 * tokens / ranks / compute
    sending = volumes(layer, plan)["tp"] / bandwidth
    assert tensor_parallel_ratio(8192, ranks, bandwidth, compute) == pytest.approx(
        computing / sending
    )


@given(ranks=st.integers(2, 4096), bandwidth=rates, compute=speeds)
def test_at_that_many_tokens_computing_and_synchronising_take_as_long(
    ranks, bandwidth, compute
):
    params = LLAMA_70B.params
    tokens = data_parallel_tokens(ranks, bandwidth, compute)

    computing = 6 * params * tokens / compute
    sending = all_reduce_bytes(2 * params, ranks) / bandwidth
    assert computing == pytest.approx(sending)


@given(bandwidth=rates, compute=speeds, scale=st.floats(1e-3, 1e3))
def test_ratios_do_not_depend_on_the_units_of_bytes_or_time(bandwidth, compute, scale):
    """Bytes: bandwidth and bytes a value together. Seconds: both rates together."""
    ratio = tensor_parallel_ratio(8192, 8, bandwidth, compute)
    tokens = data_parallel_tokens(8, bandwidth, compute)

    rates_scaled = (bandwidth * scale, compute * scale)
    assert tensor_parallel_ratio(8192, 8, *rates_scaled) == pytest.approx(ratio)
    assert data_parallel_tokens(8, *rates_scaled) == pytest.approx(tokens)
    wide = 2 * scale
    assert tensor_parallel_ratio(8192, 8, bandwidth * scale, compute, wide) == (
        pytest.approx(ratio)
    )
    assert data_parallel_tokens(8, bandwidth * scale, compute, wide) == (
        pytest.approx(tokens)
    )


def test_one_rank_synchronises_nothing_and_many_hardly_more_than_few():
    assert data_parallel_tokens(1, 24.5e9, 82.6e12) == 0
    eight, many = (data_parallel_tokens(n, 24.5e9, 82.6e12) for n in (8, 4096))
    assert many / eight == pytest.approx(8 / 7, rel=1e-3)


def test_bandwidths_may_be_an_array():
    bandwidths = np.array([24.5e9, 450e9])

    each = [tensor_parallel_ratio(8192, 8, float(b), H100) for b in bandwidths]
    assert tensor_parallel_ratio(8192, 8, bandwidths, H100).tolist() == each
    assert data_parallel_tokens(8, bandwidths, H100).shape == (2,)


@pytest.mark.parametrize("value", NOT_SIZES, ids=repr)
def test_what_is_not_a_rate_is_refused(value):
    for question in (
        lambda bandwidth: bytes_per_flop(bandwidth, 1e12),
        lambda bandwidth: tensor_parallel_ratio(8192, 8, bandwidth, 1e12),
        lambda bandwidth: data_parallel_tokens(8, bandwidth, 1e12),
    ):
        with pytest.raises(ValueError, match=r"^bandwidth="):
            question(value)
    with pytest.raises(ValueError, match=r"^compute="):
        bytes_per_flop(1e9, value)
    with pytest.raises(ValueError, match=r"^bytes_per_value="):
        tensor_parallel_ratio(8192, 8, 1e9, 1e12, value)
    with pytest.raises(ValueError, match=r"^gradient_bytes="):
        data_parallel_tokens(8, 1e9, 1e12, value)


@pytest.mark.parametrize("value", NOT_COUNTS, ids=repr)
def test_what_is_not_a_count_is_refused(value):
    with pytest.raises(ValueError, match=r"^hidden="):
        tensor_parallel_ratio(value, 8, 1e9, 1e12)
    with pytest.raises(ValueError, match=r"^ranks="):
        tensor_parallel_ratio(8192, value, 1e9, 1e12)
    with pytest.raises(ValueError, match=r"^ranks="):
        data_parallel_tokens(value, 1e9, 1e12)


def test_one_rank_has_no_tensor_parallel_ratio():
    with pytest.raises(
        ValueError, match="ranks=1 must be a whole number of at least 2"
    ):
        tensor_parallel_ratio(8192, 1, 1e9, 1e12)


# ---- FLOP for each byte sent ---------------------------------------------------------


def test_intensities_by_hand():
    """9 * 8192 / (7 * 2) FLOP a byte; 8/7 * 3 * 4096 / 4 with gradients in fp32."""
    assert tensor_parallel_intensity(8192, 8) == pytest.approx(5266.29, abs=0.01)
    assert tensor_parallel_intensity(8192, 8, 1) == pytest.approx(10532.57, abs=0.01)
    assert data_parallel_intensity(4096, 8, 4) == pytest.approx(3510.86, abs=0.01)


@given(
    ranks=st.integers(2, 4096),
    tokens=st.floats(1, 1e7),
    width=st.sampled_from([1, 2, 4]),
    bandwidth=rates,
    compute=speeds,
)
def test_tokens_at_which_half_the_time_is_sync_put_the_intensity_on_the_ridge(
    ranks, tokens, width, bandwidth, compute
):
    """Computing takes T / T* times as long as sending."""
    half = data_parallel_tokens(ranks, bandwidth, compute, width)
    ratio = data_parallel_intensity(tokens, ranks, width) * bandwidth / compute

    assert ratio == pytest.approx(tokens / half)


@given(intensity=st.floats(1, 1e7), bandwidth=rates, compute=speeds)
def test_a_roofline_is_work_over_its_time(intensity, bandwidth, compute):
    """Time of `intensity` FLOP and one byte: the longer of two, or their sum."""
    computing, sending = intensity / compute, 1 / bandwidth

    hidden = roofline_rate(intensity, bandwidth, compute)
    serial = roofline_rate(intensity, bandwidth, compute, overlap=False)

    assert hidden == pytest.approx(intensity / max(computing, sending))
    assert serial == pytest.approx(intensity / (computing + sending))
    assert serial < hidden <= 2.000001 * serial


@pytest.mark.parametrize("value", NOT_SIZES, ids=repr)
def test_what_is_not_an_intensity_is_refused(value):
    for field, question in {
        "intensity": lambda: roofline_rate(value, 1e9, 1e12),
        "bandwidth": lambda: roofline_rate(1e3, value, 1e12),
        "compute": lambda: roofline_rate(1e3, 1e9, value),
        "tokens": lambda: data_parallel_intensity(value, 8),
        "gradient_bytes": lambda: data_parallel_intensity(4096, 8, value),
        "bytes_per_value": lambda: tensor_parallel_intensity(8192, 8, value),
    }.items():
        with pytest.raises(ValueError, match=f"^{field}="):
            question()


def test_one_rank_sends_nothing_and_has_no_intensity():
    for question in (tensor_parallel_intensity, data_parallel_intensity):
        with pytest.raises(ValueError, match="ranks=1 must be a whole number"):
            question(8192, 1)
