import os
import time

import pytest
import redis

from synth import bell
from synth.models import RenderGroup
from tests import factories

BROKER = os.environ.get("TEST_REDIS_URL", "redis://127.0.0.1:6379/15")


def reachable():
    try:
        return redis.Redis.from_url(BROKER, socket_connect_timeout=1).ping()
    except redis.RedisError:
        return False


def test_a_broker_that_is_down_holds_no_request(db, loud_bell):
    factories.group()
    begin = time.monotonic()
    assert bell.ring(RenderGroup, bell.TASKS[RenderGroup]) == 1
    assert time.monotonic() - begin < 0.5


@pytest.mark.skipif(not reachable(), reason=f"no Redis at {BROKER}: set TEST_REDIS_URL")
def test_one_message_goes_out_for_each_waiting_unit_and_none_for_a_busy_one(db, loud_bell):
    from config.celery import app

    client = redis.Redis.from_url(BROKER)
    client.delete("mlx")
    for place in range(3):
        factories.group(place=place)
    factories.group(place=9, state="done")
    before = app.conf.broker_url
    app.conf.broker_url = BROKER
    app.pool.force_close_all() if app._pool else None
    app._pool = None
    try:
        app.amqp._producer_pool = None
        bell.flush(10)
        assert [bell.ring(RenderGroup, bell.TASKS[RenderGroup]) for _ in range(2)] == [3, 0]
        bell.flush(10)
        assert client.llen("mlx") == 3
    finally:
        app.conf.broker_url = before
        app._pool = app.amqp._producer_pool = None
        client.delete("mlx")
