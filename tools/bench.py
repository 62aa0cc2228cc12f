"""How fast the library answers, on one core of this machine.

usage: python tools/bench.py
"""

from statistics import median
from time import perf_counter

from commwall.catalog import LLAMA2_70B, cluster
from commwall.memory import memory
from commwall.steptime import step_time
from commwall.sweep import plans, search

ROUNDS = 5
RIG = cluster("H100 SXM5", 1024)
BATCH = 1024


def seconds(work):
    """Median time of `ROUNDS` runs."""
    taken = []
    for _ in range(ROUNDS):
        start = perf_counter()
        work()
        taken.append(perf_counter() - start)
    return median(taken)


def main():
    """LLaMA-2 70B on 1,024 H100s: every plan of the search, one by one and whole."""
    space = list(plans(LLAMA2_70B, RIG, BATCH))
    timed = seconds(lambda: [step_time(LLAMA2_70B, plan, RIG) for plan in space])
    kept = seconds(lambda: [memory(LLAMA2_70B, plan) for plan in space])
    searched = seconds(lambda: search(LLAMA2_70B, RIG, BATCH))
    print(f"legal plans        {len(space):,}")
    print(f"step_time          {len(space) / timed:,.0f} plans/s")
    print(f"memory             {len(space) / kept:,.0f} plans/s")
    print(f"search, all plans  {searched:.3f} s")
    print(f"search over timing every plan {searched / timed:.2f}")


if __name__ == "__main__":
    main()
