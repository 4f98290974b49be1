import time

import pytest
import redis
from django.conf import settings
from kombu.exceptions import OperationalError

from synth import bell
from synth.models import RenderGroup
from tests import factories


def reachable():
    try:
        return redis.Redis.from_url(settings.REDIS_URL, socket_connect_timeout=1).ping()
    except redis.RedisError:
        return False


def test_a_broker_that_is_down_holds_no_request_and_loses_no_work(db, loud_bell, monkeypatch):
    tried = []

    def dead():
        time.sleep(1)  # what the client spends on finding no server
        tried.append(1)
        raise OperationalError("no server")

    task = bell.TASKS[RenderGroup]
    monkeypatch.setattr(task, "apply_async", dead)
    factories.group()
    begin = time.monotonic()
    assert bell.ring(RenderGroup.objects.all(), task) == 1
    assert time.monotonic() - begin < 0.5
    bell.flush(5)
    assert tried == [1] and RenderGroup.objects.get().state == "queued"


@pytest.mark.skipif(not reachable(), reason=f"no Redis at {settings.REDIS_URL}: set TEST_REDIS_URL")
def test_one_message_goes_out_for_each_waiting_unit_and_none_for_a_busy_one(db, loud_bell):
    client = redis.Redis.from_url(settings.REDIS_URL)
    client.delete("mlx")
    for place in range(3):
        factories.group(place=place)
    factories.group(place=9, state="done")
    assert [bell.ring(RenderGroup.objects.all(), bell.TASKS[RenderGroup]) for _ in range(2)] == [3, 0]
    bell.flush(10)
    assert client.llen("mlx") == 3
    client.delete("mlx")
