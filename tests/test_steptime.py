"""A step's seconds: by hand, against published runs, and by what physics forbids."""

from dataclasses import replace
from math import ceil, inf, isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commwall.collectives import all_reduce_time, reduce_scatter_time, send_time
from commwall.kernels import memory_time
from commwall.passes import (
    accumulation_time,
    backward_pass,
    host_time,
    logits_pass,
)
from commwall.pipeline import bubble_overhead
from commwall.plan import AXES, Overlap, Plan, Precision
from commwall.steptime import step_time
from commwall.volumes import volumes
from samples import (
    A100,
    LLAMA_70B,
    MIXTRAL,
    NIC,
    NVLINK,
    cluster,
    faster,
    gpt,
    runs,
    stage_forward,
)

NOTHING_HIDDEN = Overlap(dp=False, zero3=False, cp=False, tp=False, pp=False)
MEGATRON = {"fused_attention": False, "fused_kernels": True, "scatter_gather": True}
BUCKET = 25 * 2**20


def with_links(machine, change):
    """The same cluster with every link changed."""
    tiers = tuple(replace(tier, link=change(tier.link)) for tier in machine.tiers)
    return replace(machine, tiers=tiers)


def with_clock(machine, clock):
    """Everything so many times as fast: compute, memory and links."""
    gpu = replace(
        machine.gpu,
        compute=machine.gpu.compute * clock,
        memory_bandwidth=machine.gpu.memory_bandwidth * clock,
    )
    sped = with_links(
        machine,
        lambda link: replace(faster(link, clock), latency=link.latency / clock),
    )
    return replace(sped, gpu=gpu)


def seconds_of(step):
    """All parts of a step by name."""
    parts = {f"exposed {axis}": step.exposed[axis] for axis in AXES}
    return parts | {
        "compute": step.compute,
        "bubble": step.bubble,
        "optimizer": step.optimizer,
    }


def test_one_gpu_computes_and_updates_and_does_nothing_else():
    model = gpt(24, 2304, 24, 2048)
    plan = Plan(global_batch=2)
    step = step_time(model, plan, cluster(1))
    forward = stage_forward(model, plan, A100)
    passes = forward.total + backward_pass(plan, forward).total

    ends = logits_pass(model, plan, A100).total + accumulation_time(model, plan, A100)
    assert step.launch == 0
    assert step.compute == pytest.approx(2 * (passes + ends))
    adam = 14 * 4 + 4 * 4 + 2 * 2 + 2 + 4  # moments, master, gradient, weight from it
    assert step.optimizer == pytest.approx(memory_time(adam * model.params, A100))
    fused = step_time(model, replace(plan, fused_kernels=True), cluster(1))
    once = 2 + 2 * 12 + 2
    assert fused.optimizer == pytest.approx(memory_time(once * model.params, A100))
    assert step.bubble == sum(step.exposed.values()) == sum(step.hidden.values()) == 0


def test_a_sharded_optimizer_updates_a_shard():
    """28 bytes a parameter read or written; two copies of each expert on 16 ranks."""
    plan = Plan(fused_kernels=True, dp=8, global_batch=8, zero_stage=1)
    step = step_time(LLAMA_70B, plan, cluster(8))
    assert step.optimizer == pytest.approx(memory_time(28 * LLAMA_70B.params / 8, A100))

    plan = Plan(fused_kernels=True, ep=8, dp=16, global_batch=16, zero_stage=1)
    routed = 32 * MIXTRAL.expert_params
    shard = (MIXTRAL.params - routed) / 16 + routed / 8 / 2
    step = step_time(MIXTRAL, plan, cluster(16))
    assert step.optimizer == pytest.approx(memory_time(28 * shard, A100))


def test_a_model_of_small_layers_waits_for_the_host():
    """A layer of 1 ms is launched in 2; a CUDA graph, or more tokens, end the wait."""
    model, plan = gpt(12, 768, 12, 512, vocab=1), Plan(global_batch=4)
    step = step_time(model, plan, cluster(1))

    assert step.compute == pytest.approx(
        4 * (host_time(plan, 12) + accumulation_time(model, plan, A100)), rel=0.01
    )
    assert 0 < step.launch < step.compute
    for quick in ({"cuda_graphs": True}, {"micro_batch": 32, "global_batch": 32}):
        assert step_time(model, replace(plan, **quick), cluster(1)).launch == 0


def test_unequal_stages_wait_for_the_one_with_moststage_forward():
    """Two stages of 60 and 20 layers, no logits: the second fills and drains once."""
    model = replace(LLAMA_70B, vocab=1)
    plan = Plan(pp=2, global_batch=4, stage_layers=(60, 20))
    layer = stage_forward(model, Plan(pp=80, global_batch=4), A100)
    layer = layer.total + backward_pass(Plan(), layer).total

    step = step_time(model, plan, cluster(2))
    adding = 4 * accumulation_time(model, plan, A100)
    assert step.compute - adding == pytest.approx(4 * 60 * layer, rel=1e-3)
    assert step.bubble == pytest.approx(20 * layer, rel=1e-3)


def test_tensor_parallel_traffic_by_hand():
    """320 all-reduces of 67 MB a micro-batch over NVLink, all of them exposed."""
    step = step_time(LLAMA_70B, Plan(tp=8, global_batch=3), cluster(8))

    expected = 3 * 320 * all_reduce_time(4096 * 8192 * 2, 8, NVLINK)
    assert step.exposed["tp"] == pytest.approx(expected)
    assert step.hidden["tp"] == 0


def test_tensor_parallelism_falls_off_a_cliff_where_it_leaves_the_node():
    """From NVLink to one node's NICs for all: the wall in one number."""
    model = replace(gpt(96, 12288, 96, 2048), kv_heads=96)
    machine = cluster(16, nics=1)
    inside = step_time(model, Plan(tp=8, dp=2, global_batch=2), machine).exposed["tp"]
    across = step_time(model, Plan(tp=16, global_batch=2), machine).exposed["tp"]

    assert across / 2 > 8 * inside


def test_data_parallel_traffic_by_hand():
    """Eight replicas of 12 layers of 70B on NVLink: one all-reduce, or bucket wise."""
    model = replace(LLAMA_70B, layers=12)
    plan = Plan(dp=8, global_batch=8, overlap=NOTHING_HIDDEN)
    expected = all_reduce_time(2 * model.params, 8, NVLINK)

    step = step_time(model, plan, cluster(8))
    assert step.exposed["dp"] == pytest.approx(expected)
    hidden = step_time(model, replace(plan, overlap=Overlap()), cluster(8))
    buckets = ceil(2 * model.params / BUCKET)
    expected = buckets * all_reduce_time(2 * model.params / buckets, 8, NVLINK)
    assert hidden.exposed["dp"] == pytest.approx(expected / 12)  # one layer's
    assert hidden.hidden["dp"] == pytest.approx(expected * 11 / 12)


def test_an_all_reduce_between_nodes_takes_the_faster_of_ring_and_tree():
    """128 ranks: 254 hops for each bucket in a ring, 14 in a tree."""
    model, plan = replace(LLAMA_70B, layers=12), Plan(dp=128, global_batch=128)
    machine = cluster(128)
    buckets = ceil(2 * model.params / BUCKET)
    ring, tree = (
        buckets
        * all_reduce_time(
            2 * model.params / buckets, 128, machine.link_across(128), algorithm
        )
        for algorithm in ("ring", "tree")
    )

    step = step_time(model, plan, machine)
    assert tree < ring
    assert step.exposed["dp"] + step.hidden["dp"] == pytest.approx(tree)


def test_sync_that_is_longer_than_the_backward_pass_is_not_hidden():
    model = replace(LLAMA_70B, layers=12)
    plan = Plan(dp=16, global_batch=16)
    machine = cluster(16, between=replace(NIC, bandwidth=1e9), nics=1)
    step = step_time(model, plan, machine)
    forward = stage_forward(model, plan, A100)

    assert step.hidden["dp"] == pytest.approx(backward_pass(plan, forward).total)
    assert step.exposed["dp"] > step.compute


def test_sync_through_the_hosts_memory_hides_nothing_unless_asked():
    """Two 3090s lost as much with four times the work to hide it behind."""
    model = replace(LLAMA_70B, layers=12)
    host = cluster(8, inside=replace(NVLINK, through_host=True))
    for stage in (0, 3):
        plan = Plan(dp=8, global_batch=8, zero_stage=stage)
        step = step_time(model, plan, host)
        assert step.hidden["dp"] == 0 < step.exposed["dp"]
        asked = replace(plan, overlap=Overlap(host=True))
        direct = step_time(model, plan, cluster(8))
        assert step_time(model, asked, host).hidden == direct.hidden


def test_weights_that_zero_1_and_2_gather_hide_behind_nothing():
    """Stage 1 scatters once, stage 2 three times, behind that many backward passes."""
    model = replace(LLAMA_70B, layers=12)
    buckets = ceil(2 * model.params / BUCKET)
    half = buckets * reduce_scatter_time(2 * model.params / buckets, 8, NVLINK)
    for stage, rounds in ((1, 1), (2, 3)):
        plan = Plan(dp=8, global_batch=24, zero_stage=stage)
        step = step_time(model, plan, cluster(8))
        assert step.exposed["dp"] == pytest.approx(half + rounds * half / 12)
        assert step.hidden["dp"] == pytest.approx(rounds * half * 11 / 12)


@pytest.mark.parametrize(("stage", "rounds"), [(0, 1), (1, 1), (2, 3)])
def test_only_as_many_backward_passes_hide_sync_as_there_are_rounds_of_it(
    stage, rounds
):
    model = replace(LLAMA_70B, layers=12)
    plan = Plan(dp=16, global_batch=48, zero_stage=stage)
    machine = cluster(16, between=replace(NIC, bandwidth=1e9), nics=1)
    backward = backward_pass(plan, stage_forward(model, plan, A100))

    step = step_time(model, plan, machine)
    assert step.hidden["dp"] == pytest.approx(rounds * backward.total)


def test_zero_3_hides_a_gather_behind_each_pass_and_the_scatter_behind_backward():
    """On a slow network: forward hides at most a forward pass, backward the same."""
    model = replace(LLAMA_70B, layers=12)
    plan = Plan(dp=16, global_batch=48, zero_stage=3)
    slow = cluster(16, between=replace(NIC, bandwidth=1e9), nics=1)
    forward = stage_forward(model, plan, A100)
    passes = 3 * (forward.total + backward_pass(plan, forward).total)

    assert step_time(model, plan, slow).hidden["dp"] == pytest.approx(passes)
    fast = step_time(model, plan, cluster(16))
    layer = 2 * model.params / 12
    each = 36 * reduce_scatter_time(layer, 16, cluster(16).link_across(16))
    assert fast.exposed["dp"] == pytest.approx(3 * each / 12)
    assert fast.hidden["dp"] == pytest.approx(3 * each * 11 / 12)


@pytest.mark.parametrize(("hides", "shares"), [("dp", 1), ("zero3", 2)])
def test_zero_3_can_hide_its_scatter_or_its_gathers_alone(hides, shares):
    model = replace(LLAMA_70B, layers=12)
    overlap = replace(NOTHING_HIDDEN, **{hides: True})
    plan = Plan(dp=8, global_batch=8, zero_stage=3, overlap=overlap)
    each = 12 * reduce_scatter_time(2 * model.params / 12, 8, NVLINK)

    step = step_time(model, plan, cluster(8))
    assert step.hidden["dp"] == pytest.approx(shares * each * 11 / 12)


def test_a_ring_of_keys_and_values_hides_behind_attention_and_ulysses_does_not():
    plan = Plan(cp=8, global_batch=2)
    model = replace(LLAMA_70B, kv_heads=64)
    slow = cluster(8, inside=replace(NVLINK, bandwidth=1e9))
    forward = stage_forward(model, plan, A100)
    attention = forward.attention + backward_pass(plan, forward).attention

    step = step_time(model, plan, slow)
    assert step.hidden["cp"] == pytest.approx(2 * attention)
    assert step_time(LLAMA_70B, plan, cluster(8)).exposed["cp"] == 0
    ulysses = step_time(model, replace(plan, context="ulysses"), cluster(8))
    assert ulysses.exposed["cp"] > 0 == ulysses.hidden["cp"]


def test_tensor_parallel_traffic_can_hide_behind_all_of_compute():
    overlap = replace(NOTHING_HIDDEN, tp=True)
    plan = Plan(tp=8, global_batch=3, overlap=overlap)
    slow = cluster(8, inside=replace(NVLINK, bandwidth=1e9))
    forward = stage_forward(LLAMA_70B, plan, A100)
    passes = forward.total + backward_pass(plan, forward).total

    assert step_time(LLAMA_70B, plan, cluster(8)).exposed["tp"] == 0
    assert step_time(LLAMA_70B, plan, slow).hidden["tp"] == pytest.approx(3 * passes)


def test_the_bubble_is_the_overhead_of_the_formula():
    """No slower last stage, no tensor parallelism: (p - 1) / m of a stage's time."""
    model = replace(LLAMA_70B, vocab=1)
    for pp, m in ((2, 4), (8, 16), (8, 8)):
        plan = Plan(pp=pp, global_batch=m, fused_kernels=True)
        step = step_time(model, plan, cluster(pp))
        logits = logits_pass(model, plan, A100).total
        expected = bubble_overhead(pp, m) * (step.compute - m * logits)
        assert step.bubble == pytest.approx(expected)


def test_tensor_parallel_traffic_stretches_the_bubble():
    plan = Plan(tp=4, pp=2, global_batch=4, fused_kernels=True)
    step = step_time(LLAMA_70B, plan, cluster(8))
    logits = 4 * logits_pass(LLAMA_70B, plan, A100).total

    stage = (step.compute - logits + step.exposed["tp"]) / 4
    assert step.bubble == pytest.approx(stage)


def test_pipeline_messages_by_hand():
    """Every message waited for: 2 * 4 of 67 MB, a node's NICs shared by its GPUs."""
    plan = Plan(pp=16, global_batch=4, overlap=NOTHING_HIDDEN)

    one = send_time(4096 * 8192 * 2, 2, NIC)
    step = step_time(LLAMA_70B, plan, cluster(16))
    assert step.exposed["pp"] == pytest.approx(8 * one)
    interleaved = replace(plan, vpp=5, global_batch=16)
    step = step_time(LLAMA_70B, interleaved, cluster(16))
    assert step.exposed["pp"] == pytest.approx(2 * 5 * 16 * one)


def test_pipeline_messages_that_nobody_waits_for_are_hidden():
    """GPipe waits for 2 (p - 1) of its 2 m; the rest travels while stages work."""
    plan = Plan(pp=16, global_batch=64, schedule="gpipe")
    one = send_time(4096 * 8192 * 2, 2, NIC)

    step = step_time(LLAMA_70B, plan, cluster(16))
    assert step.exposed["pp"] == pytest.approx(30 * one)
    assert step.hidden["pp"] == pytest.approx((128 - 30) * one)


def test_experts_of_one_node_share_its_nics_among_their_rings():
    """Eight ranks of experts: each expert's ring has one GPU a node, and one NIC."""
    plan = Plan(ep=8, dp=16, global_batch=16, overlap=NOTHING_HIDDEN)
    routed = 32 * MIXTRAL.expert_params / 8
    rest = MIXTRAL.params - 32 * MIXTRAL.expert_params
    machine = cluster(16)

    step = step_time(MIXTRAL, plan, machine)
    expected = all_reduce_time(2 * rest, 16, machine.link_across(16))
    expected += all_reduce_time(2 * routed, 2, NIC)
    assert step.exposed["dp"] == pytest.approx(expected)


def test_mfu_by_hand():
    """FLOP of all tokens over seconds times the peak of all GPUs."""
    plan = Plan(tp=8, global_batch=4)
    step = step_time(LLAMA_70B, plan, cluster(8))
    tokens = 4 * 4096

    assert step.tokens_per_second == pytest.approx(tokens / step.total)
    flop = tokens * LLAMA_70B.flop_per_token
    assert step.mfu == pytest.approx(flop / (step.total * 8 * 312e12))


def test_hfu_counts_what_is_recomputed():
    """Full: a forward pass of all layers, without logits. Selective: two products."""
    ratios = {}
    for recompute in ("none", "selective", "full"):
        plan = Plan(tp=8, recompute=recompute)
        step = step_time(LLAMA_70B, plan, cluster(8))
        ratios[recompute] = step.hfu / step.mfu - 1
    forward = 2 * (LLAMA_70B.matmul_params - 32000 * 8192)
    core = 2 * 80 * 4096 * 8192

    assert ratios["none"] == 0
    flop = LLAMA_70B.flop_per_token
    assert ratios["selective"] == pytest.approx(core / flop)
    assert ratios["full"] == pytest.approx((forward + core) / flop)


@pytest.mark.parametrize(
    ("model", "plan", "measured"),
    [
        (gpt(48, 6144, 64, 2048),
         Plan(tp=8, micro_batch=4, global_batch=4, recompute="selective",
              sequence_parallel=True, **MEGATRON), 1.10),
        (gpt(96, 12288, 96, 2048),
         Plan(tp=8, pp=8, vpp=3, global_batch=64, recompute="full", **MEGATRON), 18.13),
        (gpt(105, 20480, 128, 2048),
         Plan(tp=8, pp=35, vpp=3, global_batch=280, recompute="selective",
              sequence_parallel=True, **MEGATRON), 37.83),
        (gpt(40, 6144, 48, 2048),
         Plan(tp=8, dp=32, micro_batch=8, global_batch=1024, recompute="full",
              **MEGATRON), 9.388),
    ],
)  # fmt: skip
def test_seconds_of_published_a100_runs_are_within_a_tenth(model, plan, measured):
    """korthikanti2022, table 5, and narayanan2021, table 1; no fit for any of them."""
    step = step_time(model, plan, cluster(plan.gpus))

    assert step.total == pytest.approx(measured, rel=0.1)


@given(run=runs())
def test_parts_are_finite_none_is_negative_and_they_sum_to_the_total(run):
    step = step_time(*run)

    parts = seconds_of(step)
    assert all(isfinite(seconds) and seconds >= 0 for seconds in parts.values())
    assert sum(parts.values()) == pytest.approx(step.total)
    kernels = step.matmul + step.elementwise
    assert kernels + step.launch == pytest.approx(step.compute)
    assert step.matmul > 0 < step.elementwise
    assert step.launch >= 0
    assert all(isfinite(hidden) and hidden >= 0 for hidden in step.hidden.values())


@given(run=runs())
def test_no_step_does_more_than_its_gpus_can(run):
    step = step_time(*run)

    assert 0 < step.mfu <= step.hfu <= 1
    assert step.tokens_per_second > 0


@given(run=runs())
def test_traffic_is_exposed_or_hidden_where_there_is_any_and_nowhere_else(run):
    model, plan, machine = run
    step = step_time(model, plan, machine)

    for axis, bytes_ in volumes(model, plan).items():
        spent = step.exposed[axis] + step.hidden[axis]
        assert (spent > 0) == (bytes_ > 0)


@given(run=runs(), factor=st.floats(1, 1e4))
def test_more_bandwidth_or_less_latency_never_slows_a_step(run, factor):
    model, plan, machine = run
    before = step_time(model, plan, machine).total * (1 + 1e-12)

    quick = with_links(machine, lambda link: faster(link, factor))
    near = with_links(machine, lambda own: replace(own, latency=own.latency / factor))
    wide = replace(machine, nics_per_node=machine.nics_per_node + int(factor))
    for better in (quick, near, wide):
        assert step_time(model, plan, better).total <= before


@given(run=runs(), factor=st.floats(1, 1e4), tier=st.integers(0, 1))
def test_more_bandwidth_on_one_tier_never_slows_a_step(run, factor, tier):
    model, plan, machine = run
    tiers = list(machine.tiers)
    tiers[tier] = replace(tiers[tier], link=faster(tiers[tier].link, factor))
    better = replace(machine, tiers=tuple(tiers))

    before = step_time(model, plan, machine).total * (1 + 1e-12)
    assert step_time(model, plan, better).total <= before


@given(run=runs(), factor=st.floats(1, 100))
def test_a_better_gpu_never_slows_a_step_that_hides_nothing(run, factor):
    model, plan, machine = run
    plan = replace(plan, overlap=NOTHING_HIDDEN, cuda_graphs=True)
    before = step_time(model, plan, machine).total * (1 + 1e-12)

    gpu = machine.gpu
    quick = replace(gpu, compute=factor * gpu.compute)
    wide = replace(gpu, memory_bandwidth=factor * gpu.memory_bandwidth)
    for better in (quick, wide):
        assert step_time(model, plan, replace(machine, gpu=better)).total <= before


@given(run=runs())
def test_hiding_traffic_never_slows_a_step(run):
    model, plan, run_on = run
    machine = with_links(run_on, lambda link: replace(link, latency=0))  # buckets
    open_ = step_time(model, replace(plan, overlap=NOTHING_HIDDEN), machine).total
    for axis in ("dp", "zero3", "cp", "tp", "host"):
        hiding = replace(NOTHING_HIDDEN, **{axis: True})
        step = step_time(model, replace(plan, overlap=hiding), machine)
        assert step.total <= open_ * (1 + 1e-12)


@given(run=runs(), clock=st.floats(0.01, 100))
def test_a_machine_with_a_faster_clock_takes_the_same_step_in_less_time(run, clock):
    """The dimension check of seconds: all rates times k, all latencies over k."""
    model, plan, machine = run
    plan = replace(plan, cuda_graphs=True)  # the host's own time does not change
    before = step_time(model, plan, machine)
    after = step_time(model, plan, with_clock(machine, clock))

    for part, seconds in seconds_of(before).items():
        assert seconds_of(after)[part] * clock == pytest.approx(seconds, rel=1e-6)
    assert after.mfu == pytest.approx(before.mfu)


@given(run=runs(), scale=st.floats(0.01, 100))
def test_seconds_of_traffic_do_not_depend_on_the_unit_bytes_are_counted_in(run, scale):
    """Every value sent, every link and every memory times k, and as many buckets."""
    model, plan, machine = run
    machine = with_links(machine, lambda link: replace(link, latency=0))
    plan = replace(plan, overlap=NOTHING_HIDDEN)  # kernels of wider values hide more
    fields = ("weights", "gradients", "master", "moments", "activations")
    sizes = {field: scale * getattr(plan.precision, field) for field in fields}
    wider = replace(plan, precision=Precision(**sizes))
    before = step_time(model, plan, machine)
    rescaled = with_links(machine, lambda link: faster(link, scale))
    after = step_time(model, wider, rescaled)

    for axis in AXES:
        assert after.exposed[axis] == pytest.approx(before.exposed[axis], rel=1e-6)
        total, same = (
            step.exposed[axis] + step.hidden[axis] for step in (before, after)
        )
        assert same == pytest.approx(total, rel=1e-6)
    assert after.optimizer == pytest.approx(scale * before.optimizer)


@given(run=runs())
def test_infinite_bandwidth_without_latency_leaves_no_traffic(run):
    model, plan, machine = run
    ideal = with_links(machine, lambda link: replace(link, bandwidth=inf, latency=0))
    step = step_time(model, plan, ideal)

    assert sum(step.exposed.values()) == sum(step.hidden.values()) == 0
    assert step.total == pytest.approx(step.compute + step.bubble + step.optimizer)
    assert step.total <= step_time(model, plan, machine).total * (1 + 1e-12)


@given(run=runs(), times=st.integers(2, 4))
def test_more_micro_batches_take_longer_and_use_the_machine_better(run, times):
    model, plan, machine = run
    plan = replace(plan, zero_stage=min(plan.zero_stage, 1))
    longer = replace(plan, global_batch=times * plan.global_batch)
    before, after = (step_time(model, p, machine) for p in (plan, longer))

    assert before.total < after.total <= times * before.total * (1 + 1e-9)
    assert after.mfu >= before.mfu * (1 - 1e-9)


@given(run=runs())
def test_recomputing_takes_time_and_does_no_more_for_the_model(run):
    model, plan, machine = run
    launched = replace(plan, overlap=NOTHING_HIDDEN, cuda_graphs=True)
    none, selective, full = (
        step_time(model, replace(launched, recompute=how), machine)
        for how in ("none", "selective", "full")
    )

    assert none.total <= selective.total * (1 + 1e-12) <= full.total * (1 + 1e-9)
    assert none.flop_per_token == selective.flop_per_token == full.flop_per_token
    flop = [step.hardware_flop_per_token for step in (none, selective, full)]
    assert none.flop_per_token == flop[0] < flop[1] < flop[2]


@pytest.mark.parametrize(
    ("model", "plan", "gpus", "message"),
    [
        (LLAMA_70B, Plan(tp=8), 16, r"= 8 GPUs must equal the cluster's gpus=16; .*=8"),
        (LLAMA_70B, Plan(tp=8, pp=3), 24, "pp=3 must divide layers=80; .*: 2, 4"),
        ("LLaMA-2 70B", Plan(), 1, "model='LLaMA-2 70B' must be a Model"),
    ],
)
def test_what_cannot_run_is_refused(model, plan, gpus, message):
    with pytest.raises(ValueError, match=message):
        step_time(model, plan, cluster(gpus))
