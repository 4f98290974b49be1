"""A crowd worker who comes for a second study is the same listener; a vote's doubt becomes a column."""

import django.db.models.deletion
from django.db import migrations, models


def first_visits(apps, schema_editor):
    rater = apps.get_model("listening", "Rater")
    first = {}
    for pk, *who in rater.objects.exclude(external_id="").order_by("pk").values_list("pk", "platform", "external_id"):
        if first.setdefault(tuple(who), pk) != pk:
            rater.objects.filter(pk=pk).update(first=first[tuple(who)])


def doubts(apps, schema_editor):
    vote = apps.get_model("listening", "Vote")
    for pk, log in vote.objects.values_list("pk", "log").iterator():
        if log.get("doubt"):
            vote.objects.filter(pk=pk).update(doubt=log["doubt"])


def lengths(apps, schema_editor):
    for pair in apps.get_model("listening", "Pair").objects.select_related("reference", "tested").iterator():
        pair.shorter_s, pair.longer_s = sorted(clip.samples / clip.sample_rate for clip in (pair.reference, pair.tested))
        pair.save(update_fields=["shorter_s", "longer_s"])


class Migration(migrations.Migration):

    dependencies = [
        ('listening', '0002_controls_qualification_platforms'),
    ]

    operations = [
        migrations.AddField(
            model_name='rater',
            name='first',
            field=models.ForeignKey(blank=True, help_text="The same worker's first visit, under another study.", null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='later', to='listening.rater'),
        ),
        migrations.AddField(
            model_name='vote',
            name='doubt',
            field=models.CharField(blank=True, default='', help_text='Why the listening behind this answer is in doubt.', max_length=12),
        ),
        migrations.AddIndex(
            model_name='vote',
            index=models.Index(fields=['cast_at'], name='listening_v_cast_at_6ba91a_idx'),
        ),
        migrations.AddField(
            model_name='vote',
            name='glitches',
            field=models.PositiveSmallIntegerField(default=0, help_text='How often the sound stuttered.'),
        ),
        migrations.AddField(
            model_name='pair',
            name='longer_s',
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name='pair',
            name='shorter_s',
            field=models.FloatField(help_text='Length of the shorter recording, s; kept here because every vote reads it.', null=True),
        ),
        migrations.RunPython(first_visits, migrations.RunPython.noop),
        migrations.RunPython(doubts, migrations.RunPython.noop),
        migrations.RunPython(lengths, migrations.RunPython.noop),
    ]
