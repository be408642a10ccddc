"""A run that a worker leaves and another one takes over is one trace; each worker sends what it has written."""

from __future__ import annotations

import signal

from tests.cluster.town import Town, marks_pipeline, until
from tests.telemetry.receiver import Received, receiving

from quire.engine.records import Status


async def test_a_run_of_two_workers_is_one_trace(town: Town) -> None:
    with receiving() as receiver:
        town.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = receiver.address
        cluster = await town.cluster()
        workers = {worker.pid: worker for worker in town.workers(2)}
        run = await town.create(marks_pipeline(4, 1.0))
        await cluster.look(run)
        until(lambda: "1/tool" in receiver.by_path(), "nothing is sent while the run is driven")
        driving = workers[town.marks()[0]["pid"]]
        driving.send(signal.SIGKILL)
        await town.reach([run], Status.COMPLETED)
        until(lambda: "" in receiver.by_path(), "the end of the run is not sent")
    by_id: dict[str, Received] = {}
    for span in receiver.spans:
        assert by_id.setdefault(span.id, span) == span
    assert len({mark["pid"] for mark in town.marks()}) == 2
    assert sorted(span.attributes["quire.path"] for span in by_id.values()) == [
        "",
        *(path for step in "1234" for path in (step, f"{step}/tool")),
    ]
    assert {span.trace for span in by_id.values()} == {receiver.spans[0].trace}
    assert all(not span.parent or span.parent in by_id for span in by_id.values())
