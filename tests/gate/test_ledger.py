"""The ledger: every plan and verdict in a chain; whatever is changed behind Django's back is found."""

import threading

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from gate import advance, ledger
from gate.models import LedgerEntry, Lever, Look, Plan, Verdict
from tests import factories
from tests.gate import flow

pytestmark = pytest.mark.usefixtures("known_metrics")


@pytest.fixture
def settled(db, tmp_path):
    """Two levers with verdicts, from their files to the end."""
    bench = flow.bench(tmp_path)
    change = {"runtime": {"cache_limit_mb": 512}, "expect_bit_exact": True}
    factories.registered(lever="one", change=change)
    flow.work(bench)
    advance.advance_open()
    flow.work(bench)
    advance.advance_open()
    factories.registered(lever="two", change={"runtime": {"cache_limit_mb": 256}, "expect_bit_exact": True}, plan={"purpose": "tuning"})
    flow.work(bench)
    advance.advance_open()
    flow.work(bench)
    bench.close()
    advance.advance_open()
    return list(Lever.objects.order_by("pk"))


def test_every_plan_and_verdict_is_in_the_chain(settled, capsys):
    assert list(LedgerEntry.objects.order_by("number").values_list("kind", "lever__slug")) == [
        ("plan", "one"),
        ("verdict", "one"),
        ("plan", "two"),
        ("verdict", "two"),
    ]
    assert ledger.verify() == []
    call_command("ledger", "--verify")
    call_command("ledger")
    said = capsys.readouterr().out
    assert "4 entries, all as they were written." in said and "provisional (floor_lowered" in said
    body = LedgerEntry.objects.get(number=4).body
    assert body["verdict"] == "provisional" and body["look"]["kind"] == "automatic" and body["code_version"]
    assert LedgerEntry.objects.get(number=3).body["attempt"] == 2


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("UPDATE gate_verdict SET verdict = 'accepted' WHERE lever_id = (SELECT id FROM gate_lever WHERE slug = 'one')", "A verdict of one (accepted) stands otherwise"),
        ("DELETE FROM gate_ledgerentry WHERE number = 2", "Entry 2 is missing"),
        ("UPDATE gate_ledgerentry SET sha256 = previous WHERE number = 3", "Entry 3 (plan of two) was changed"),
        ("UPDATE gate_lever SET slug = 'zwei' WHERE slug = 'two'", "Entry 3 (plan of zwei) was changed"),
    ],
)  # fmt: skip
def test_a_change_in_the_database_is_found(settled, statement, told):
    with connection.cursor() as cursor:
        cursor.execute(statement)
    assert any(told in text for text in ledger.verify())
    with pytest.raises(CommandError, match="not as they were written"):
        call_command("ledger", "--verify")


@pytest.mark.parametrize("model", [Plan, Look])
def test_a_changed_plan_or_look_is_found(settled, model):
    row = model.objects.first()
    field = "body" if model is Plan else "evidence"
    changed = getattr(row, field) | {"margins": {"cer": 0.5}, "endpoints": [{"name": "cer", "upper": 0.0}]}
    super(type(model.objects.all()), model.objects.all()).update(**{field: changed})
    assert any("is not what was" in text for text in ledger.verify())


def test_nothing_is_changed_or_deleted_through_django(settled):
    entry = LedgerEntry.objects.first()
    for act in (entry.save, entry.delete, LedgerEntry.objects.all().delete, lambda: LedgerEntry.objects.update(kind="plan")):
        with pytest.raises(LedgerEntry.WrittenOnce):
            act()


@pytest.mark.django_db(transaction=True)
def test_two_writers_at_once_make_one_chain():
    lever = factories.registered()
    errors = []

    def write():
        try:
            for k in range(5):
                ledger._append("plan", lever, {"k": k})
        except Exception as error:  # noqa: BLE001 - told by the test
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=write) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert errors == [] and list(LedgerEntry.objects.order_by("number").values_list("number", flat=True)) == list(range(1, 21))
    assert ledger._chain(list(LedgerEntry.objects.order_by("number"))) == []
    assert Verdict.objects.count() == 0
