"""Reading and deleting what scripts keep, over HTTP (SCR-322 to 333)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from services.orchestrator.store import scripts
from services.orchestrator.store.pool import Database
from services.orchestrator.store.scripts import StoreName, Write
from tests.fixtures.crew import Crew
from tests.fixtures.fake_orchestrator import FakeOrchestrator
from tests.fixtures.gateway import gateway_before

ROUTE = "/api/agents/default/script-store"


@asynccontextmanager
async def http_of(crew: Crew) -> AsyncIterator[httpx.AsyncClient]:
    address = crew.environ["MY_AGENT_ORCHESTRATOR_LISTEN"]
    async with gateway_before(address, crew.folder / "secrets", FakeOrchestrator()) as gateway:
        yield gateway.http


async def keep(crew: Crew, name: StoreName, **values: str) -> None:
    database = Database(crew.database.url, size=2)
    await database.open()
    async with database.transaction() as connection:
        writes = [Write(key, value) for key, value in values.items()]
        await scripts.apply(connection, name, writes, generation=0, most_chars=1_000_000)
    await database.close()


@pytest.mark.spec("SCR-322", "SCR-323", "SCR-324", "SCR-325", "SCR-326")
async def test_case_31_the_stores_of_an_agent(crew: Crew) -> None:
    conversation_id = await crew.open(title="Hoá đơn")
    untitled = await crew.open()
    for opened, value in ((conversation_id, '["a1","b2"]'), (untitled, '"' + "x" * 300 + '"')):
        await keep(crew, StoreName("default", f"conv:{opened}", opened), told=value)
    await keep(crew, StoreName("default", "job:due-reminders"), told='["a1","b2"]')
    await keep(crew, StoreName("default", "notes"), b="1", a="2")
    await keep(crew, StoreName("somebody", "notes"), a="secret")
    async with http_of(crew) as http:
        body = (await http.get(ROUTE)).json()
        assert (await http.get("/api/agents/nobody/script-store")).status_code == 404
    assert body["limit_chars"] == 262_144
    stores = {store["namespace"]: store for store in body["namespaces"]}
    assert list(stores) == sorted(stores)
    job = stores["job:due-reminders"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", job["entries"][0].pop("updated_at"))
    assert job == {
        "namespace": "job:due-reminders",
        "kind": "job",
        "ref": "due-reminders",
        "title": None,
        "orphan": True,
        "chars": 15,
        "entries": [{"key": "told", "preview": '["a1","b2"]', "chars": 11}],
    }
    titled, bare = stores[f"conv:{conversation_id}"], stores[f"conv:{untitled}"]
    assert (titled["kind"], titled["ref"], titled["title"]) == ("conv", conversation_id, "Hoá đơn")
    assert (titled["orphan"], bare["title"]) == (False, None)
    assert bare["entries"][0]["preview"] == '"' + "x" * 199 + "…"
    assert bare["entries"][0]["chars"] == 302
    other = stores["notes"]
    assert (other["kind"], other["ref"], other["title"], other["orphan"]) == ("other", "notes", None, False)
    assert [entry["key"] for entry in other["entries"]] == ["a", "b"]
    assert "secret" not in str(body)


@pytest.mark.spec("SCR-322")
async def test_an_agent_that_keeps_nothing(crew: Crew) -> None:
    async with http_of(crew) as http:
        assert (await http.get(ROUTE)).json() == {"limit_chars": 262_144, "namespaces": []}


@pytest.mark.spec("SCR-327", "SCR-328", "SCR-321")
async def test_one_value_whole_under_a_key_as_the_script_wrote_it(crew: Crew) -> None:
    key = " a/b c&d=é "
    await keep(crew, StoreName("default", "notes"), **{key: '{"z":1.10,"a":2}'})
    async with http_of(crew) as http:
        found = await http.get(f"{ROUTE}/value", params={"namespace": "notes", "key": key})
        body = found.json()
        assert body.pop("updated_at")
        assert body == {"namespace": "notes", "key": key, "text": '{"z":1.10,"a":2}', "chars": 16}
        absent = [{"namespace": "notes", "key": "a/b"}, {"namespace": "other", "key": key}]
        for wanted in absent:
            assert (await http.get(f"{ROUTE}/value", params=wanted)).status_code == 404
        for missing in ({"namespace": "notes"}, {"key": key}):
            assert (await http.get(f"{ROUTE}/value", params=missing)).status_code == 422
        gone = await http.get("/api/agents/nobody/script-store/value", params=absent[0])
        assert gone.status_code == 404


@pytest.mark.spec("SCR-329", "SCR-330", "SCR-331")
async def test_forgetting_a_key_or_a_store_and_never_all(crew: Crew) -> None:
    await keep(crew, StoreName("default", "notes"), a="1", b="2")
    await keep(crew, StoreName("default", "other"), a="1")
    async with http_of(crew) as http:
        assert (await http.delete(ROUTE)).status_code == 422
        assert (await http.delete(ROUTE, params={"key": "a"})).status_code == 422
        one = await http.delete(ROUTE, params={"namespace": "notes", "key": "a"})
        assert (one.status_code, one.json()) == (200, {"deleted": 1})
        assert (await http.delete(ROUTE, params={"namespace": "notes", "key": "a"})).json() == {"deleted": 0}
        assert (await http.delete(ROUTE, params={"namespace": "notes"})).json() == {"deleted": 1}
        left = [store["namespace"] for store in (await http.get(ROUTE)).json()["namespaces"]]
        assert left == ["other"]
        missing = await http.delete("/api/agents/nobody/script-store", params={"namespace": "other"})
        assert missing.status_code == 404
        for method in (http.post, http.put, http.patch):
            assert (await method(ROUTE, json={"namespace": "other", "key": "a"})).status_code == 405


@pytest.mark.spec("SCR-316")
async def test_deleting_a_conversation_deletes_its_store(crew: Crew) -> None:
    conversation_id = await crew.open()
    await keep(crew, StoreName("default", f"conv:{conversation_id}", conversation_id), a="1")
    async with http_of(crew) as http:
        assert (await http.delete(f"/api/conversations/{conversation_id}")).status_code == 204
        assert (await http.get(ROUTE)).json()["namespaces"] == []
