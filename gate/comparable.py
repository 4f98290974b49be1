"""Whether parent and candidate can be compared under a plan; each refusal is one sentence."""

from __future__ import annotations

from gate import policy, stages
from synth import configuration as schema
from synth.batches import whole_batches
from synth.configuration import Refused


def seeds(configuration: schema.Configuration, which: str) -> None:
    if "seed" in configuration.sampling.extra:
        raise Refused(
            "fixed_seed",
            f"{which}.sampling.extra.seed is one seed for all sentences: leave it out, every sentence gets its own, the same for both.",
            f"{which}.sampling.extra.seed",
        )


def streams(plan: policy.Plan, parent: schema.Configuration, candidate: schema.Configuration) -> None:
    """A first sound is only waited for in a stream; without one, all of the sentence is."""
    if plan.benefit in ("first_audio", "streaming") and not (parent.streaming and candidate.streaming):
        whole = "parent" if not parent.streaming else "candidate"
        raise Refused(
            "benefit_needs_streams",
            f"plan.benefit is {plan.benefit!r}, but the {whole} has no streaming section and speaks only when it is done: "
            "add one to both, or choose another benefit.",
            "plan.benefit",
        )


def batches(plan: policy.Plan, parent: schema.Configuration, candidate: schema.Configuration, drawn: int) -> None:
    """What speaks several at once is judged at its size: every look must render and time whole batches of it, and compares no hashes."""
    covered = [0, *stages.counts(plan, drawn)]
    least = min(b - a for a, b in zip(covered, covered[1:], strict=False))
    sizes = [c.batching.size for c in (parent, candidate) if c.batching]
    for which, configuration in (("parent", parent), ("candidate", candidate)):
        if configuration.batching is None:
            continue
        if candidate.expect_bit_exact:
            raise Refused(
                "batch_bit_exact",
                f"candidate.expect_bit_exact is on, but the {which} speaks {configuration.batching.size} sentences at once, and a sentence "
                "sounds by its neighbours: leave it out.",
                "candidate.expect_bit_exact",
            )
        if configuration.streaming is not None:
            raise Refused(
                "stream_or_batch",
                f"The {which} has both streaming and batching: a stream is one listener's, a batch many sentences at once; leave one out.",
                f"{which}.streaming",
            )
        if configuration.batching.size > least:
            raise Refused(
                "batch_too_large",
                f"{which}.batching.size is {configuration.batching.size} and a look has {least} new sentences: draw more, or look less "
                "often, or it would be judged at another batch size.",
                f"{which}.batching.size",
            )
    if sizes and plan.timed and whole_batches(1, sizes) > drawn:
        raise Refused(
            "batch_too_large",
            f"Whole batches of {' and '.join(map(str, sizes))} take {whole_batches(1, sizes)} sentences, and {drawn} are drawn: draw as "
            "many at least, or one system would be timed at another batch size.",
            "candidate.batching.size",
        )
