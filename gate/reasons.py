"""Every reason code in plain words, and what to do next. docs/verdicts.md holds the same table; a test keeps them equal."""

from __future__ import annotations

NAMES = {
    "cer": "the character error rate", "dnsmos": "DNSMOS", "length": "the length", "level": "the level",
    "catastrophe": "the share of sentences that fail outright", "preference": "listeners' net preference", "speed": "the speed-up",
    "human": "listeners' net preference", "memory": "at least 5 % less memory", "first_audio": "a first sound at least 3 % sooner",
    "streaming": "a shorter pre-roll that never starves", "quality": "better quality",
}  # fmt: skip

#: code -> (sentence, what to do next). A code with a colon is looked up by the part after it first, then before it.
WORDS: dict[str, tuple[str, str]] = {
    "evidence_incomplete": ("Some of the clips this look covers were neither made nor failed, or not measured.", "See what is missing, bring the worker or the scorer back and register a re-try."),
    "clips_lost": ("Clips were lost: no worker finished them.", "Look at the worker's log; a lost clip is never replaced by a guess."),
    "clips_not_measured": ("Clips could not be measured because the scorer was down.", "Mend the scorer; a clip it could not read would be a failure, this is not."),
    "asr_wrong_script": ("The recogniser wrote too many of the parent's transcripts in another script, so its error rate means nothing.", "Add a second recogniser to the plan (`second_recogniser`), or use one that knows the language."),
    "asr_too_weak": ("The recogniser understands the parent itself too badly (CER above 0.30) to tell whether the candidate is worse.", "Use a recogniser that knows the language, or sentences it can follow."),
    "beyond_margin": ("Worse than the parent by more than the margin, with the whole interval beyond it: {name}.", "Change the lever; more data will not help."),
    "longer": ("It speaks longer than its parent.", "A speed-up measured as time over audio hides this; look at pauses and pace."),
    "shorter": ("It speaks shorter than its parent.", "Check for cut ends and skipped words."),
    "slower": ("It is shown to be more than 3 % slower than its parent.", "Find what slowed it down; a change kept for another reason must not cost speed."),
    "speed_below_threshold_or_spread": ("The speed-up it was made for is not there: under 3 %, or within the run-to-run spread.", "Keep the parent; a change without a benefit is only a risk."),
    "speed_invalid": ("The timed blocks are void: other programs used the machine, or a pass could not be finished.", "Look at the worker, close what runs beside it and register a re-try."),
    "averages_disagree": ("By one average of its clips it is fast enough, by another it is not: some always take much longer.", "Look at the times of single clips; a shape that is compiled anew each time is the usual cause."),
    "speed_unknown": ("No speed was measured.", "Give the plan a timed block, or declare the benefit `none`."),
    "absent": ("What it was made for is not shown: {name}.", "Keep the parent; a change without a benefit is only a risk."),
    "invalid": ("The measurement of what it was made for is void: {name}.", "Look at the worker, close what runs beside it and register a re-try."),
    "unknown": ("What it was made for was not measured: {name}.", "See that the engine reports it, or declare another benefit."),
    "not_measured": ("The plan requires it and nobody measured it: {name}.", "Bring the scorer back, or take it out of the next plan."),
    "not_established": ("Not shown to be within the margin, and not shown to be beyond it: {name}.", "More sentences, votes or blocks narrow the interval; the planner says how many."),
    "below_floor": ("Too few sentences or clips for {name} to pass.", "Draw at least as many as the floor asks."),
    "panel_too_small": ("The panel is too small for {name} to pass.", "Invite more listeners; more sentences will not help."),
    "assay_not_met": ("The panel was not shown to hear a moderate damage, so hearing none means little: {name} stays open.", "Run the listening test with assay controls."),
    "final_look": ("This was the plan's last look.", "A re-try is a new lever with a share of the error rate of its own."),
    "collect_more": ("The evidence does not decide yet.", "Collect more of what is open above."),
    "human_votes_pending": ("Everything measured is within its margin; listeners have not voted yet.", "Send the invitation link to native speakers."),
    "futile": ("Listening stopped early: what was heard so far left the votes to come almost no chance to pass.", "Change the lever, or register a re-try with more listeners; those votes were not worth asking for."),
    "closed": ("The plan's closing date came first.", "Register a re-try with a later date."),
    "tuning_sentences": ("Judged on sentences that were used to choose it.", "Confirm it on fresh sentences."),
    "floor_lowered": ("Fewer sentences or clips than the policy's floor: rare failures would go unseen.", "Run it with the policy's floor before you ship."),
    "panel_lowered": ("A smaller panel than the policy's.", "Run it with the policy's panel before you ship."),
    "assay_waived": ("The plan waives the proof that the panel hears a moderate damage.", "Run it with assay controls before you ship."),
    "assay_eased": ("The panel had to hear a coarser damage than the policy's.", "Run it with the policy's assay before you ship."),
    "controls_lowered": ("Fewer controls than the policy's: less is known of how the raters listened.", "Run it with the policy's controls before you ship."),
    "screening_changed": ("Raters were excluded by other rules than the policy's.", "Run it with the policy's rules before you ship."),
    "exclusions_decide": ("With all raters it would be beyond the margin, without the excluded ones inside it: {name} stays open.", "Look at who was excluded and why; ask further raters."),
    "exclusions_matter": ("With all raters' votes the endpoint would stand otherwise.", "Look at who was excluded and why before you ship."),
    "panel_self_declared": ("Some raters only said that they know the language; nobody tested it.", "Upload recordings for the panel's language test, so that the next panel is tested."),
    "sides_uneven": ("Raters preferred one side more than chance explains, whichever system was on it.", "Sides are balanced, so the preference stands; look at the raters' records."),
    "first_heard_uneven": ("Raters preferred what they heard first, or second, more than chance explains.", "Sides are balanced, so the preference stands; it costs precision."),
    "tail_loosened": ("The plan's error rate is looser than the policy's.", "Use the policy's tail before you ship."),
    "margin_loosened": ("The plan's margin is looser than the policy's: {name}.", "Use the policy's margin before you ship."),
    "core_endpoint_missing": ("Not measured, though every verdict should rest on it: {name}.", "Add it to the plan."),
    "timing_lowered": ("Fewer timed blocks or sentences than the policy asks.", "Time it with the policy's blocks before you ship."),
    "speed_unmeasured": ("Nobody measured whether it costs speed.", "Give the plan timed blocks (`timing.blocks`)."),
    "sentences_spent": ("Some of its sentences had been spent on a variant of it before.", "Confirm it on fresh sentences."),
    "unreserved_attempt": ("Another lever changed the same section of the same parent before: this is a further attempt, and none was reserved for it.", "Confirm it on fresh sentences, with its own share of the error rate."),
    "plan_amended": ("Its plan was amended after it was locked, before anything was read.", "Register it with the plan you want from the start."),
    "unanchored": ("Its parent is itself a change, and it was not compared with the system they both come from: small losses add up unseen.", "Leave `expect_bit_exact` out, and the anchor is rendered beside it."),
    "stale-parent": ("It stands on a parent that was rejected since.", "Register it again on a parent that stands."),
    "expired": ("The engine, the system or the device has changed since it was measured.", "Measure parent and candidate again on what you ship now."),
    "identical_undeclared": ("Every clip equals its parent's, but nobody declared that, so the parent was not shown deterministic first.", "Register it again with `expect_bit_exact: true`; nobody needs to listen."),
    "parent_not_accepted": ("Its parent is itself not accepted.", "Settle the parent first."),
    "evidence:automatic-only": ("Accepted on measurements alone: not heard by a listener.", "Ship it knowing that, or have it heard."),
    "evidence:heard": ("Measured and heard by listeners.", "Ship it."),
    "evidence:bit-identical": ("Every clip is bit for bit its parent's.", "Ship it."),
    "not_bit_identical_full_gate_applies": ("Declared bit-identical, but not every clip is, so everything was measured.", "Find the clips that differ."),
    "significantly_worse": ("Shown to be worse than its parent, by however little: {name}.", "Remember it when the next change is stacked on top."),
    "human_votes_ignored_identical_audio": ("Votes on identical recordings were ignored.", "Nothing: they can only be noise."),
}  # fmt: skip

#: Why a clip counts as a catastrophe; docs/metrics.md holds the same table.
CATASTROPHES = {
    "empty": "The model ended before it said anything.",
    "error": "The model failed, or ran out of time.",
    "not_finite": "Some samples are not numbers.",
    "too_short": "Shorter than 100 ms.",
    "no_audible_speech": "Nothing can be heard in it.",
    "runaway": "It did not stop by itself, or is far too long for its text.",
    "repetition_loop": "It says a phrase over and over.",
    "truncated_tail": "Its end is missing.",
}  # fmt: skip

#: What a reader should know of a clip; flags decide nothing.
FLAGS = {
    "asr_empty": "The recogniser understood nothing.",
    "wrong_script": "The recogniser wrote in another script: its failure, not the voice's.",
    "second_recogniser_counts": "The first recogniser failed, so the second one's transcript was used.",
    "asr_loop": "The recogniser repeated itself faster than anybody speaks.",
    "hallucination": "The transcript holds a caption that recognisers invent.",
    "spelling_only": "The transcript differs from the text in spelling only.",
    "clipped": "The sound stands at full scale.",
    "dc_offset": "The sound is shifted away from zero.",
    "narrow_band": "Below 16 kHz: DNSMOS misses half of the band.",
    "unusual_rate": "Above 48 kHz: it was resampled on its way here.",
    "ends_abruptly": "It ends at speech level, with no silence after it.",
    "seam_clicks": "The sound jumps where chunks were joined.",
    "dnsmos_sampled": "So long that not all of it was scored.",
}  # fmt: skip

VERDICTS = {
    "accepted": "Accepted: shown not to be worse than its parent, and to bring what it promised.",
    "provisional": "Provisional: nothing speaks against it, but the evidence is weaker than the policy asks.",
    "rejected": "Rejected: shown to be worse than allowed, or not shown to be good enough at the last look.",
    "no-benefit": "No benefit: whatever its quality, it does not bring what it was made for.",
    "inconclusive": "Inconclusive: the evidence decides neither way.",
}


def explain(code: str) -> tuple[str, str]:
    """(sentence, what to do next) of a reason code such as `cer:beyond_margin` or `margin_loosened:dnsmos`."""
    left, _, right = code.partition(":")
    if code in WORDS:
        sentence, remedy = WORDS[code]
        return sentence, remedy
    for key, name in ((right, left), (left, right)):
        if key in WORDS:
            sentence, remedy = WORDS[key]
            base = name.removeprefix("anchor_")
            shown = NAMES.get(base, base) + (" against the anchor" if base != name else "")
            return sentence.format(name=shown), remedy
    return code, ""
