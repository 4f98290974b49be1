"""Rows for tests, made in one place."""

from datetime import timedelta

from django.utils import timezone

from gate import register
from listening.models import Invitation, Pair, Panel, Rater, Study
from synth import configuration as schema
from synth.models import Clip, Configuration, RenderGroup, Sentence, Worker

SENTENCES = [
    "The ferry leaves at dawn.", "She kept every letter.", "Close the window before the rain.", "My brother paints old boats.",
    "We found a small cafe.", "Nobody told the driver.", "The garden smelled of mint.", "Turn left at the bakery.",
]  # fmt: skip


def tone(name="tone", **extra):
    body = {"name": name, "engine": "tests.tone:Tone", "model": {"path": "tone"}}
    return body | ({"sampling": {"extra": extra}} if extra else {})


def spec(lever="louder", parent=None, change=None, texts=None, **changes):
    """A lever that can be registered; demonstration-sized."""
    plan = {
        "benefit": "none", "floor": {"sentences": 2, "clips": 2}, "panel": {"raters": 2, "sentences": 2, "votes": 4},
        "listening": {"votes_per_pair": 2, "looks": [1.0], "assay": False, "controls": 0}, "timing": {"blocks": 0},
    }  # fmt: skip
    return {
        "lever": lever, "parent": parent or tone(), "change": change or {"sampling": {"extra": {"detune": 1.01}}},
        "sentences": {"language": "en", "texts": texts or SENTENCES[:4]}, "plan": _merged(plan, changes.pop("plan", {})), **changes,
    }  # fmt: skip


def _merged(plan, changes):
    return plan | {k: {**plan.get(k, {}), **v} if isinstance(v, dict) else v for k, v in changes.items()}


def registered(**kwargs):
    return register.register([spec(**kwargs)])[0]


def configuration(name="tone", **extra):
    return Configuration.of(schema.parse(tone(name, **extra)))


def sentence(text="The ferry leaves at dawn."):
    return Sentence.objects.get_or_create(digest=register.sentence_digest(text, "en"), defaults={"language": "en", "text": text})[0]


def worker(name="mac"):
    return Worker.objects.get_or_create(name=name, defaults={"device_class": "test"})[0]


def group(draw_key="draw", place=0, config=None, **fields):
    return RenderGroup.objects.create(configuration=config or configuration(), draw_key=draw_key, place=place, **fields)


def clip(number=0, samples=None, rate=24000):
    """A stored clip of real samples: a tone whose pitch depends on its number."""
    import hashlib

    import numpy as np

    from synth import clips, pcm

    if samples is None:
        samples = (0.2 * np.sin(2 * np.pi * (200 + number) * np.arange(rate) / rate)).astype(np.float32)
    data = pcm.encode_flac(samples, rate)
    digest = hashlib.sha256(data).hexdigest()
    clips.take(data, digest)
    return Clip.objects.get_or_create(
        pcm_sha256=pcm.pcm_sha256(samples, rate), defaults={"file_sha256": digest, "sample_rate": rate, "samples": len(samples)}
    )[0]


def study(pairs=4, votes_per_pair=2, language="en", first_clip=0):
    panel, _ = Panel.objects.get_or_create(language=language)
    made = Study.objects.create(panel=panel, votes_per_pair=votes_per_pair)
    for k in range(pairs):
        Pair.objects.create(
            study=made, sentence=sentence(f"Sentence number {chr(97 + k)}{chr(97 + first_clip % 26)}."), reference=clip(first_clip + 2 * k),
            tested=clip(first_clip + 2 * k + 1), first_side=k % 2,
        )  # fmt: skip
    return made


def controls(of, count=22, q_db=15.0):
    """Control pairs in a study, made by the product from speech-like sound."""
    import numpy as np

    from listening import controls as making
    from listening import pairs
    from listening.models import Pair

    def voice(k):
        t = np.arange(36000 + 300 * k) / 24000
        loud = 0.5 * (1 + np.sin(2 * np.pi * 3 * t)) * (t > 0.1) * (t < t[-1] - 0.1)
        return clip(samples=(0.3 * loud * np.sin(2 * np.pi * (150 + 7 * k) * t)).astype(np.float32))

    good = [(sentence(f"Control {chr(97 + k)} of this panel.").pk, voice(k)) for k in range(count)]
    spoken = {answer: voice(40 + k) for k, answer in enumerate(("left", "same", "right"))}
    for k, made in enumerate(making.make(good, spoken, q_db)):
        first, second = made.gains or (0.0, 0.0)
        Pair.objects.create(
            study=of, sentence_id=made.sentence, reference=made.reference, tested=made.tested, gain_reference=first, gain_tested=second,
            kind=made.kind, damage=made.damage, expected=made.expected, first_side=k % 2,
        )  # fmt: skip
    return pairs


def invitation(language="en", **fields):
    panel, _ = Panel.objects.get_or_create(language=language)
    return Invitation.objects.create(panel=panel, **{"expires_at": timezone.now() + timedelta(days=1), **fields})


def rater(language="en", **fields):
    invited = invitation(language, **fields)
    return Rater.objects.create(panel=invited.panel, invitation=invited, sound_checked_at=timezone.now())
