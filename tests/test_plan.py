"""How a model is split: degrees, groups, batches, and every split that is refused."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commwall.plan import AXES, Overlap, Plan, Precision
from samples import LLAMA_70B, MIXTRAL, NOT_COUNTS, NOT_SIZES, models, plans

COUNTS = ["tp", "pp", "vpp", "dp", "cp", "ep", "micro_batch", "global_batch"]
POD = Plan(tp=4, cp=2, dp=2, pp=2, global_batch=4)  # 32 GPUs


def groups(plan, axis):
    """Groups of an axis, found by numbering GPUs (pp, dp, cp, tp) as the axes nest."""
    shape = (plan.pp, plan.dp, plan.cp, plan.tp)
    ranks = np.arange(plan.gpus).reshape(shape)
    moving = {"tp": (3,), "cp": (2,), "dp": (1, 2), "pp": (0,)}[axis]
    still = [place for place in range(4) if place not in moving]
    size = np.prod([shape[place] for place in moving])
    return ranks.transpose(*still, *moving).reshape(-1, size)


def test_a_plan_by_hand():
    plan = Plan(tp=8, pp=4, dp=16, micro_batch=2, global_batch=1024)

    assert plan.gpus == 512
    assert plan.micro_batches == 32
    assert plan.replicas == 16


def test_axes_nest_from_the_closest_gpus_outward():
    """4 GPUs of tensor parallel side by side; stages half the machine apart."""
    assert [POD.ranks(axis) for axis in ("tp", "cp", "dp", "pp")] == [4, 2, 4, 2]
    assert [POD.stride(axis) for axis in ("tp", "cp", "dp", "pp")] == [1, 4, 4, 16]
    assert [POD.span(axis) for axis in ("tp", "cp", "dp", "pp")] == [4, 8, 16, 32]


@given(data=st.data())
def test_ranks_stride_and_span_are_those_of_the_nested_axes(data):
    plan = data.draw(plans(data.draw(models())))
    for axis in ("tp", "cp", "dp", "pp"):
        for group in groups(plan, axis).tolist():
            assert len(group) == plan.ranks(axis)
            assert set(np.diff(group)) <= {plan.stride(axis)}
            assert group[-1] - group[0] < plan.span(axis)


@given(data=st.data())
def test_every_gpu_is_used_and_every_sequence_is_read_once(data):
    plan = data.draw(plans(data.draw(models())))

    assert plan.gpus == plan.tp * plan.cp * plan.dp * plan.pp
    assert plan.micro_batches * plan.dp * plan.micro_batch == plan.global_batch
    assert plan.replicas % plan.ep == 0
    assert plan.span("pp") == plan.gpus
    assert plan.span("ep") == plan.tp * plan.ep <= plan.span("dp")


def test_sixteen_bytes_a_parameter_by_hand():
    """bf16 weights and gradients, fp32 master copy, two fp32 moments."""
    assert Precision().bytes_per_param == 2 + 2 + 4 + 4 + 4
    assert Precision(gradients=4).bytes_per_param == 18
    assert Precision().optimizer == 12
    assert Precision(weights=4, gradients=4, master=0).bytes_per_param == 16


@pytest.mark.parametrize("value", NOT_COUNTS, ids=repr)
@pytest.mark.parametrize("field", COUNTS)
def test_what_is_not_a_count_is_refused(field, value):
    with pytest.raises(ValueError, match=rf"^{field}=.*nearest legal value: \d+$"):
        Plan(**{field: value})


@pytest.mark.parametrize("value", [-1, 4, 2.0, "3", None, True, float("nan")])
def test_an_unknown_zero_stage_is_refused(value):
    with pytest.raises(ValueError, match=r"^zero_stage=.*nearest legal value: [0-3]$"):
        Plan(zero_stage=value)


@pytest.mark.parametrize("value", NOT_SIZES, ids=repr)
@pytest.mark.parametrize("field", Precision.__dataclass_fields__)
def test_what_is_not_a_number_of_bytes_is_refused(field, value):
    with pytest.raises(ValueError, match=f"^{field}="):
        Precision(**{field: value})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"global_batch": 100, "dp": 8, "micro_batch": 2},
         r"global_batch=100 .* multiple of dp \* micro_batch = 8 \* 2; .* 96, 112"),
        ({"global_batch": 3, "dp": 4}, r"global_batch=3 .*nearest legal values: 4"),
        ({"ep": 3, "dp": 2, "cp": 2, "global_batch": 2},
         r"ep=3 must divide dp \* cp=4; nearest legal values: 2, 4"),
        ({"vpp": 2}, "vpp=2 needs pp of at least 2, but pp=1; .*value: vpp=1"),
        ({"vpp": 2, "pp": 2, "schedule": "gpipe", "global_batch": 2}, "vpp=2 needs"),
        ({"vpp": 2, "pp": 4, "global_batch": 6},
         r"micro_batches=6 is not a multiple of pp=4; nearest legal values: 4, 8"),
        ({"recompute": "all"}, "recompute='all' must be one of none, selective, full"),
        ({"recompute": None}, "recompute=None must be one of"),
        ({"schedule": "1F1B"}, "schedule='1F1B' .* did you mean '1f1b'"),
        ({"context": "rings"}, "context='rings' .* did you mean 'ring'"),
        ({"sequence_parallel": "no"}, "sequence_parallel='no' must be True or False"),
        ({"fused_attention": None}, "fused_attention=None must be True or False"),
        ({"scatter_gather": 1}, "scatter_gather=1 must be True or False"),
        ({"precision": "bf16"}, "precision='bf16' must be a Precision"),
        ({"overlap": True}, "overlap=True must be a Overlap"),
    ],
)  # fmt: skip
def test_a_plan_that_makes_no_sense_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Plan(**fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"pp": 7}, "pp=7 must divide layers=80; nearest legal values: 5, 8"),
        ({"pp": 81}, "pp=81 must divide layers=80; nearest legal values: 80"),
        ({"pp": 8, "vpp": 3, "global_batch": 8},
         "vpp=3 must divide layers / pp=10; nearest legal values: 2, 5"),
        ({"tp": 3}, "tp=3 must divide heads=64; nearest legal values: 2, 4"),
        ({"tp": 16}, "tp=16 must divide kv_heads=8; nearest legal values: 8"),
        ({"cp": 3}, "cp=3 must divide seq=4096; nearest legal values: 2, 4"),
        ({"tp": 2, "cp": 8, "context": "ulysses"},
         "cp=8 must divide kv_heads / tp=4; nearest legal values: 4"),
        ({"tp": 8, "cp": 2, "context": "ulysses"},
         "cp=2 must divide kv_heads / tp=1; nearest legal values: 1"),
        ({"tp": 8, "cp": 1024, "sequence_parallel": True},
         "tp=8 must divide seq / cp=4; nearest legal values: 4"),
        ({"ep": 2, "dp": 2, "global_batch": 2},
         "ep=2 must divide experts=1; nearest legal values: 1"),
    ],
)  # fmt: skip
def test_a_plan_that_does_not_divide_the_model_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Plan(**fields).check(LLAMA_70B)


def test_every_width_that_is_cut_must_divide():
    odd = replace(LLAMA_70B, ffn=28670)
    experts = replace(MIXTRAL, moe_ffn=14330)

    with pytest.raises(ValueError, match="tp=4 must divide ffn=28670"):
        Plan(tp=4).check(odd)
    with pytest.raises(ValueError, match="tp=4 must divide moe_ffn=14330"):
        Plan(tp=4).check(experts)
    with pytest.raises(ValueError, match="ep=16 must divide experts=8"):
        Plan(ep=16, dp=16, global_batch=16).check(MIXTRAL)


def test_96_layers_on_7_stages_are_refused():
    """A public tool accepts them."""
    with pytest.raises(ValueError, match=r"pp=7 must divide layers=96; .* 6, 8"):
        Plan(pp=7).check(replace(LLAMA_70B, layers=96))


@pytest.mark.parametrize("name", ["LLaMA-2 70B", None, {}])
def test_the_name_of_a_model_is_not_a_model(name):
    with pytest.raises(ValueError, match="must be a Model"):
        Plan().check(name)


@pytest.mark.parametrize("axis", ["TP", "fsdp", "", None, 1])
def test_an_unknown_axis_is_refused(axis):
    for question in (POD.ranks, POD.stride, POD.span):
        with pytest.raises(ValueError, match="must be one of tp, cp, ep, dp, pp"):
            question(axis)
    assert AXES == ("tp", "cp", "ep", "dp", "pp")


@pytest.mark.parametrize("field", Overlap.__dataclass_fields__)
def test_an_overlap_is_a_yes_or_a_no(field):
    with pytest.raises(ValueError, match=f"^{field}='no' must be True or False"):
        Overlap(**{field: "no"})


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64, np.uint16])
def test_numpy_integers_count_as_whole_numbers_and_never_overflow(kind):
    """As int8 100 * 100 would be 16."""
    plan = Plan(tp=kind(100), dp=kind(100), global_batch=kind(100))

    assert plan == Plan(tp=100, dp=100, global_batch=100)
    assert plan.gpus == 10_000
    assert type(plan.gpus) is int


def test_a_what_if_is_a_replacement_and_is_checked_again():
    assert replace(POD, tp=8).gpus == 64
    with pytest.raises(ValueError, match="global_batch=4 is not a multiple"):
        replace(POD, dp=3)
    with pytest.raises(FrozenInstanceError):
        POD.tp = 8


def test_unequal_stages_sum_to_the_layers_and_need_no_division():
    plan = Plan(pp=3, stage_layers=(30, 30, 20))

    plan.check(LLAMA_70B)
    assert [plan.layers_on(LLAMA_70B, stage) for stage in range(3)] == [30, 30, 20]
    assert plan.most_layers(LLAMA_70B) == 30
    assert Plan(pp=4).most_layers(LLAMA_70B) == Plan(pp=4).layers_on(LLAMA_70B, 3) == 20
    with pytest.raises(ValueError, match="must sum to layers=80, not 60"):
        Plan(pp=2, stage_layers=(30, 30)).check(LLAMA_70B)


@pytest.mark.parametrize(
    "fields",
    [
        {"stage_layers": (40, 40)},
        {"pp": 2, "stage_layers": (40, 40), "vpp": 2, "global_batch": 2},
        {"pp": 2, "stage_layers": [40, 40]},
        {"pp": 2, "stage_layers": (81, -1)},
        {"pp": 2, "stage_layers": (40.0, 40.0)},
    ],
)
def test_stages_that_cannot_be_are_refused(fields):
    with pytest.raises(ValueError, match="stage_layers"):
        Plan(**fields)
