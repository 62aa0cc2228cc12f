"""The space of plans by counting it, and a search that leaves out nothing that fits."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commwall.memory import memory
from commwall.model import Model
from commwall.plan import Plan
from commwall.steptime import step_time
from commwall.sweep import lightest, neighbors, plans, scaled, search
from samples import A100, LLAMA_70B, MIXTRAL, cluster, gpt

GPT_7B = gpt(36, 4096, 32, 2048)
SMALL = Model(12, 512, 8, 4, 2048, 1000, 256, gated_mlp=True, tied_embeddings=True)
POD = cluster(16)


def by_brute_force(model, machine, global_batch):
    """Every legal plan among all small numbers, with no thought of what divides."""
    found = set()
    for tp in (1, 2, 4, 8):
        for pp in range(1, model.layers + 1):
            dp, rest = divmod(machine.gpus, tp * pp)
            for vpp in range(1, model.layers + 1):
                for micro_batch in (1, 2, 4, 8):
                    if rest or not dp:
                        continue
                    try:
                        plan = Plan(tp=tp, pp=pp, vpp=vpp, dp=dp,
                                    micro_batch=micro_batch, global_batch=global_batch,
                                    sequence_parallel=tp > 1)  # fmt: skip
                        plan.check(model)
                    except ValueError:
                        continue
                    found |= {
                        replace(plan, zero_stage=zero_stage, recompute=recompute)
                        for zero_stage in (range(4) if dp > 1 else [0])
                        for recompute in ("none", "selective", "full")
                    }
    return found


@pytest.mark.parametrize("gpus", [1, 4, 8, 16])
@pytest.mark.parametrize("global_batch", [16, 24])
def test_the_space_is_all_that_brute_force_finds_once_each(gpus, global_batch):
    machine = cluster(gpus)
    found = list(plans(SMALL, machine, global_batch))

    assert len(found) == len(set(found))
    assert set(found) == by_brute_force(SMALL, machine, global_batch)


def test_one_gpu_has_the_plans_one_can_count_by_hand():
    """No axis to cut: four micro-batches times three ways to recompute."""
    found = list(plans(SMALL, cluster(1), 8))

    assert len(found) == 4 * 3
    assert {plan.micro_batch for plan in found} == {1, 2, 4, 8}


@pytest.mark.parametrize("gpus", [8, 16, 64])
def test_every_plan_fills_the_cluster_and_divides(gpus):
    for plan in plans(GPT_7B, cluster(gpus), 64):
        plan.check(GPT_7B)
        assert plan.gpus == gpus
        assert plan.global_batch == 64
        assert plan.sequence_parallel == (plan.tp > 1)
        assert plan.cp == plan.ep == 1
        assert plan.zero_stage == 0 or plan.replicas > 1


def test_plans_that_fit_come_fastest_first_and_are_what_the_formulas_say():
    found = search(GPT_7B, POD, 32)

    seconds = [candidate.step.total for candidate in found]
    assert seconds == sorted(seconds)
    for candidate in found[:: len(found) // 20]:
        assert candidate.memory == memory(GPT_7B, candidate.plan)
        assert candidate.memory.fits(POD.gpu)
        assert candidate.step == step_time(GPT_7B, candidate.plan, POD)
        assert candidate.tokens_per_second == 32 * 2048 / candidate.step.total


def test_nothing_that_fits_is_left_out():
    found = {candidate.plan for candidate in search(GPT_7B, POD, 32)}
    everything = set(plans(GPT_7B, POD, 32))

    assert found < everything
    assert not [p for p in everything - found if memory(GPT_7B, p).fits(POD.gpu)]


def test_an_empty_list_means_that_nothing_fits():
    card = replace(A100, memory=24 * 2**30)

    assert search(LLAMA_70B, cluster(8, gpu=card), 8) == []


def test_a_larger_card_never_has_a_slower_best_plan():
    seconds = []
    for gigabytes in (24, 40, 80, 160):
        machine = cluster(16, gpu=replace(A100, memory=gigabytes * 1e9))
        found = search(GPT_7B, machine, 32)
        seconds.append(found[0].step.total if found else float("inf"))

    assert seconds == sorted(seconds, reverse=True)


def test_context_and_experts_are_cut_only_if_asked_for():
    model = replace(MIXTRAL, seq=4096)
    asked = list(plans(model, POD, 16, cp=(1, 2), ep=(1, 8)))

    assert {plan.cp for plan in asked} == {1, 2}
    assert {plan.ep for plan in asked} == {1, 8}
    assert {plan.ep for plan in plans(model, POD, 16)} == {1}
    assert all(plan.gpus == 16 for plan in asked)


def test_progress_rises_to_one():
    told = []
    search(LLAMA_70B, cluster(64), 64, progress=told.append)

    assert told == sorted(told)
    assert 0 < told[0] < told[-1] == 1


def test_the_rest_of_a_plan_is_as_in_the_base():
    base = Plan(schedule="gpipe", fused_attention=False)
    found = list(plans(SMALL, POD, 16, base=base))

    assert found
    for plan in found:
        assert (plan.schedule, plan.fused_attention) == ("gpipe", False)
        assert plan.vpp == 1


def test_seventy_billion_on_a_thousand_gpus_is_thousands_of_plans_in_seconds():
    found = list(plans(LLAMA_70B, cluster(1024), 4096))

    assert 3000 < len(found) < 6000


@given(global_batch=st.integers(1, 64))
def test_any_batch_has_plans_for_one_gpu(global_batch):
    found = list(plans(SMALL, cluster(1), global_batch))

    assert {plan.micro_batch for plan in found} == {
        micro_batch for micro_batch in (1, 2, 4, 8) if global_batch % micro_batch == 0
    }


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: search(SMALL, POD, 0), "global_batch=0 must be a whole number"),
        (lambda: search(SMALL, POD, "16"), "global_batch='16' must be a whole number"),
        (lambda: search(SMALL, POD, 16, cp=(0,)), "cp=0 must be a whole number"),
        (lambda: search(SMALL, POD, 16, ep=("2",)), "ep='2' must be a whole number"),
        (lambda: search("GPT", POD, 16), "model='GPT' must be a Model"),
    ],
)
def test_a_search_without_an_answer_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


PIPED = Plan(pp=4, vpp=3, dp=2, zero_stage=1, global_batch=16, recompute="full")


def differences(one, other):
    """Names of the fields in which two plans differ."""
    return {name for name in one.__dataclass_fields__
            if getattr(one, name) != getattr(other, name)}  # fmt: skip


def test_neighbors_are_one_change_away_and_legal():
    found = neighbors(SMALL, PIPED)

    assert found["zero_stage 3"] == replace(PIPED, zero_stage=3)
    assert found["pp 2, dp 4"] == replace(PIPED, pp=2, dp=4)
    assert found["recompute none"] == replace(PIPED, recompute="none")
    assert found["micro_batch 2"] == replace(PIPED, micro_batch=2)
    assert PIPED not in found.values()
    for plan in found.values():
        plan.check(SMALL)
        assert plan.gpus == PIPED.gpus


def test_what_has_to_follow_a_change_does():
    found = neighbors(SMALL, replace(PIPED, pp=2))

    assert found["dp 1, tp 2"].zero_stage == 0
    assert found["dp 1, tp 2"].sequence_parallel
    assert neighbors(SMALL, PIPED)["pp 2, dp 4"].vpp == 3
    assert "dp 1, pp 8" not in neighbors(SMALL, PIPED)
    assert neighbors(SMALL, Plan(pp=2, vpp=6, global_batch=4))["pp 1, dp 2"].vpp == 1


def test_the_winner_of_a_search_has_no_faster_neighbour_that_fits():
    winner = search(SMALL, POD, 32)[0]
    for plan in neighbors(SMALL, winner.plan).values():
        if plan.micro_batch <= 8 and memory(SMALL, plan).fits(POD.gpu):
            assert step_time(SMALL, plan, POD).total >= winner.step.total


def test_a_cluster_scaled_by_one_is_itself():
    assert scaled(POD) == POD


@given(factor=st.floats(0.1, 10))
def test_a_machine_faster_in_everything_is_faster_by_as_much(factor):
    """But for the host, which CUDA graphs take out of the step."""
    plan = replace(PIPED, tp=2, sequence_parallel=True, cuda_graphs=True)
    faster = scaled(
        POD,
        compute=factor,
        memory_bandwidth=factor,
        bandwidth=factor,
        latency=1 / factor,
    )
    before = step_time(SMALL, plan, POD).total

    assert step_time(SMALL, plan, faster).total == pytest.approx(before / factor)


def test_memory_scales_what_fits_and_no_time():
    half = scaled(POD, memory=0.5)

    assert half.gpu.memory == POD.gpu.memory / 2
    plan = replace(PIPED, dp=4)
    assert step_time(SMALL, plan, half) == step_time(SMALL, plan, POD)


def test_a_factor_of_nothing_is_refused():
    with pytest.raises(ValueError, match="compute=0"):
        scaled(POD, compute=0)


@given(
    model=st.sampled_from([SMALL, GPT_7B, LLAMA_70B]),
    gpus=st.sampled_from([1, 2, 4, 6, 8, 16]),
    batch=st.integers(1, 32),
)
def test_the_lightest_plan_is_that_of_all_of_them(model, gpus, batch):
    machine = cluster(gpus)
    every = [memory(model, plan).total for plan in plans(model, machine, batch)]
    found = lightest(model, machine, batch)

    assert (found is None) == (not every)
    if every:
        assert memory(model, found).total == min(every)
