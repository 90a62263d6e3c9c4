"""Shrink a failing run: leave out and reduce whatever is not needed for the same kind of failure.

A candidate counts only if the same checker fires, because a smaller run may fail in another way.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from barnabas.sim.quorum.run import Outcome, QuorumSpec, run_quorum

# Runs that a shrink may take.
RUNS_MAX: Final = 200


def shrink(
    failing: Outcome,
    *,
    run: Callable[[QuorumSpec], Outcome] = run_quorum,
    runs_max: int = RUNS_MAX,
) -> Outcome:
    """The smallest failing run that was found."""
    best, runs = failing, 0
    improved = True
    while improved and runs < runs_max:
        improved = False
        for candidate in _smaller(best.spec):
            if runs >= runs_max:
                break
            runs += 1
            outcome = run(candidate)
            if fails_alike(outcome, failing):
                best, improved = outcome, True
                break
    return best


def fails_alike(outcome: Outcome, other: Outcome) -> bool:
    """Whether the first violations of two runs are of the same checker."""
    return bool(outcome.violations) and outcome.violations[0].checker == other.violations[0].checker


def _smaller(spec: QuorumSpec) -> Iterator[QuorumSpec]:
    """Simpler runs, the most drastic first."""
    rules, size = spec.rules, len(spec.rules) // 2
    while size:
        # Leave out a part of the rules: halves, quarters, single ones.
        for start in range(0, len(rules), size):
            yield replace(spec, rules=rules[:start] + rules[start + size :])
        size //= 2
    if spec.observers:
        yield replace(spec, observers=0)
    if spec.voters > 3:
        yield replace(spec, voters=3)
    if spec.clients > 1:
        yield replace(spec, clients=1)
    if spec.duration_ms > 1_000:
        yield replace(spec, duration_ms=spec.duration_ms // 2)
    if spec.pause_ms < 300:
        yield replace(spec, pause_ms=300)
    for position, rule in enumerate(rules):
        if rule.when.at_ms is not None and rule.when.at_ms > 100:
            earlier = replace(rule, when=replace(rule.when, at_ms=rule.when.at_ms // 2))
            yield replace(spec, rules=(*rules[:position], earlier, *rules[position + 1 :]))
        if rule.for_ms is not None and rule.for_ms > 100:
            shorter = replace(rule, for_ms=rule.for_ms // 2)
            yield replace(spec, rules=(*rules[:position], shorter, *rules[position + 1 :]))
