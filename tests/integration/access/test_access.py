"""Passwords, sessions, tokens and their record, on a real database."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from argon2 import PasswordHasher

from services.common.api import OWNER_SCOPES
from services.common.errors import Conflict, CrewError, Invalid, LimitReached, NotFound, Unauthenticated
from services.common.wording import load
from services.orchestrator.access import ApiTokens, Logins, Principal
from services.orchestrator.access.audit import AccessAudit
from services.orchestrator.access.logins import network_of
from services.orchestrator.access.passwords import Passwords
from services.orchestrator.store.pool import Database
from tests.fixtures.postgres import ScratchDatabase

PASSWORD = "correct horse"
OWNER = Principal("session", "s", name="owner", scopes=OWNER_SCOPES, address="10.0.0.1")


@dataclass
class Access:
    """The parts under test, and the database below them."""

    logins: Logins
    tokens: ApiTokens
    audit: AccessAudit
    database: Database
    scratch: ScratchDatabase

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Look at the database as its superuser."""
        with psycopg.connect(self.scratch.superuser_url) as connection:
            return connection.execute(query).fetchall()  # type: ignore[arg-type]

    def change(self, query: str) -> None:
        """Change the database as its superuser."""
        with psycopg.connect(self.scratch.superuser_url) as connection:
            connection.execute(query)  # type: ignore[arg-type]

    def events(self) -> list[str]:
        """What the access audit holds, in order."""
        return [row[0] for row in self.rows("select event from audit.access order by id")]


def quick() -> Passwords:
    return Passwords(PasswordHasher(time_cost=1, memory_cost=64, parallelism=1))


@pytest.fixture
async def access(database: ScratchDatabase) -> AsyncIterator[Access]:
    pool = Database(database.url)
    await pool.open()
    audit = AccessAudit(pool)
    yield Access(Logins(pool, quick(), audit), ApiTokens(pool, audit), audit, pool, database)
    await pool.close()


async def fails(error: type[CrewError], work: Any) -> CrewError:
    with pytest.raises(error) as caught:
        await work
    for locale in ("en", "vi"):
        assert load("orchestrator").text(locale, caught.value.key, **caught.value.values)  # type: ignore[arg-type]
    return caught.value


@pytest.mark.spec("GTW-025", "GTW-028", "GTW-035")
async def test_a_password_is_kept_as_argon2id_and_opens_a_session(access: Access) -> None:
    await access.logins.set_password(PASSWORD, Principal("terminal"))
    ((hashed,),) = access.rows("select password_hash from owner_credential")
    assert hashed.startswith("$argon2id$")
    opened = await access.logins.log_in(PASSWORD, "10.0.0.1")
    who = await access.logins.verify(opened.secret, "10.0.0.1")
    assert who is not None
    assert (who.kind, tuple(who.scopes)) == ("session", OWNER_SCOPES)
    assert who.expires_at is not None
    everything = json.dumps([access.rows(f"select t::text from {t} t") for t in TABLES], default=str)
    assert PASSWORD not in everything
    assert opened.secret not in everything
    await access.logins.log_out(opened.secret, "10.0.0.1")
    await access.logins.log_out(opened.secret, "10.0.0.1")
    assert await access.logins.verify(opened.secret, "10.0.0.1") is None
    assert access.events() == ["password_set", "login", "logout"]


TABLES = ("owner_credential", "sessions", "api_tokens", "setup_tokens", "login_failures", "audit.access")


@pytest.mark.spec("GTW-029")
async def test_no_password_and_a_wrong_one_are_refused_alike(access: Access) -> None:
    unset = await fails(Unauthenticated, access.logins.log_in("guess one", "10.0.0.1"))
    await access.logins.set_password(PASSWORD, Principal("terminal"))
    wrong = await fails(Unauthenticated, access.logins.log_in("guess one", "10.0.0.1"))
    assert (unset.reason, unset.key, unset.values) == (wrong.reason, wrong.key, wrong.values)
    for odd in ("", "x" * 100_000, "\U0001f98a", "a\tb"):
        await fails(Unauthenticated, access.logins.log_in(odd, f"10.1.0.{len(odd) % 200}"))


async def test_a_missing_password_is_checked_as_long_as_a_wrong_one() -> None:
    class Counting(PasswordHasher):
        verified = 0

        def verify(self, hash: str | bytes, password: str | bytes) -> bool:
            Counting.verified += 1
            return super().verify(hash, password)

    passwords = Passwords(Counting(time_cost=1, memory_cost=64, parallelism=1))
    assert not await passwords.verify("x", None)
    assert not await passwords.verify("no password is set", None)
    assert Counting.verified == 2


@pytest.mark.spec("GTW-029", "GTW-036")
async def test_the_sixth_attempt_of_a_minute_is_held_back_even_when_right(access: Access) -> None:
    await access.logins.set_password(PASSWORD, Principal("terminal"))
    for _ in range(5):
        await fails(Unauthenticated, access.logins.log_in("wrong one", "10.0.0.9"))
    for _ in range(3):
        held = await fails(LimitReached, access.logins.log_in(PASSWORD, "10.0.0.9"))
        assert held.detail is not None
        assert 0 < int(str(held.detail["retry_after_seconds"])) <= 60
    assert await access.logins.log_in(PASSWORD, "10.0.0.8")
    events = access.events()
    assert events.count("login_failed") == 5
    assert events.count("login_blocked") == 1
    access.change("update login_failures set blocked_until = now() - interval '1 second'")
    assert await access.logins.log_in(PASSWORD, "10.0.0.9")
    assert access.rows("select * from login_failures where address = '10.0.0.9'") == []


async def test_attempts_older_than_a_minute_do_not_count(access: Access) -> None:
    for _ in range(4):
        await fails(Unauthenticated, access.logins.log_in("wrong one", "10.0.0.9"))
    access.change("update login_failures set failed_at = array[now() - interval '61 seconds']")
    for _ in range(4):
        await fails(Unauthenticated, access.logins.log_in("wrong one", "10.0.0.9"))


async def test_guessing_many_at_once_gains_nothing(access: Access) -> None:
    attempts = [access.logins.log_in(f"guess number {n}", "10.0.0.9") for n in range(14)]
    results = await asyncio.gather(*attempts, return_exceptions=True)
    judged = [result for result in results if isinstance(result, Unauthenticated)]
    assert len(judged) == 5
    assert all(isinstance(result, CrewError) for result in results)


async def test_many_addresses_do_not_fill_the_table(access: Access) -> None:
    access.change(
        "insert into login_failures (address, failed_at) "
        "select 'old' || n, array[now() - interval '1 hour'] from generate_series(1, 1000) n"
    )
    await fails(Unauthenticated, access.logins.log_in("wrong one", "10.0.0.9"))
    assert access.rows("select count(*) from login_failures") == [(1,)]


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("", ""),
        ("x" * 500, "x" * 100),
    ],
)
def test_what_counts_as_one_caller(address: str, network: str) -> None:
    assert network_of(address) == network


@pytest.mark.spec("GTW-025")
async def test_the_first_password_is_set_once_with_a_token(access: Access) -> None:
    first, second = await access.logins.open_set_up(), await access.logins.open_set_up()
    assert first is not None
    assert second is not None
    await fails(Unauthenticated, access.logins.set_up("guess", PASSWORD, "10.0.0.1"))
    await fails(Invalid, access.logins.set_up(first.secret, "short", "10.0.0.1"))
    opened = await access.logins.set_up(first.secret, PASSWORD, "10.0.0.1")
    assert await access.logins.verify(opened.secret, "10.0.0.1")
    for token in (first, second):
        await fails(Unauthenticated, access.logins.set_up(token.secret, "another password", "10.0.0.2"))
    assert await access.logins.open_set_up() is None
    assert await access.logins.log_in(PASSWORD, "10.0.0.3")
    assert access.events()[:2] == ["set_up_failed", "set_up"]


async def test_two_who_set_up_at_once(access: Access) -> None:
    tokens = [await access.logins.open_set_up() for _ in range(2)]
    results = await asyncio.gather(
        *(access.logins.set_up(t.secret, f"password {n}", f"10.0.0.{n}") for n, t in enumerate(tokens) if t),
        return_exceptions=True,
    )
    assert sum(not isinstance(result, BaseException) for result in results) == 1


async def test_an_expired_set_up_token_is_none(access: Access) -> None:
    opened = await access.logins.open_set_up()
    assert opened is not None
    access.change("update setup_tokens set expires_at = now() - interval '1 second'")
    await fails(Unauthenticated, access.logins.set_up(opened.secret, PASSWORD, "10.0.0.1"))


@pytest.mark.spec("GTW-025")
async def test_the_owner_token_of_the_environment_works_like_a_password(access: Access) -> None:
    logins = Logins(access.database, quick(), access.audit, owner_token="token of the environment")
    assert await logins.open_set_up() is None
    assert await logins.log_in("token of the environment", "10.0.0.1")
    await fails(Unauthenticated, logins.log_in("another", "10.0.0.1"))
    await fails(
        Unauthenticated, Logins(access.database, quick(), access.audit, owner_token="").log_in("", "a")
    )


@pytest.mark.spec("GTW-028")
async def test_a_session_slides_and_ends(access: Access) -> None:
    await access.logins.set_password(PASSWORD, Principal("terminal"))
    opened = await access.logins.log_in(PASSWORD, "10.0.0.1")
    access.change(
        "update sessions set expires_at = now() + interval '1 day', last_used_at = now() - interval '1 day'"
    )
    assert await access.logins.verify(opened.secret, "10.0.0.1")
    ((days,),) = access.rows("select extract(day from expires_at - now())::int from sessions")
    assert days == 29
    access.change("update sessions set expires_at = now() - interval '1 second'")
    assert await access.logins.verify(opened.secret, "10.0.0.1") is None


async def test_a_new_password_ends_every_session_and_the_owner_ends_the_others(access: Access) -> None:
    await access.logins.set_password(PASSWORD, Principal("terminal"))
    mine, other = [await access.logins.log_in(PASSWORD, "10.0.0.1") for _ in range(2)]
    me = await access.logins.verify(mine.secret, "10.0.0.1")
    assert me is not None
    await access.logins.end_others(me)
    assert await access.logins.verify(mine.secret, "10.0.0.1")
    assert await access.logins.verify(other.secret, "10.0.0.1") is None
    await access.logins.set_password("another password", me)
    assert await access.logins.verify(mine.secret, "10.0.0.1") is None


async def test_sessions_are_bounded(access: Access) -> None:
    await access.logins.set_password(PASSWORD, Principal("terminal"))
    access.change(
        "insert into sessions (id, secret_sha256, address, expires_at, last_used_at) "
        "select gen_random_uuid(), sha256(n::text::bytea), '', now() + interval '1 day', "
        "now() - n * interval '1 minute' from generate_series(1, 300) n"
    )
    opened = await access.logins.log_in(PASSWORD, "10.0.0.1")
    assert access.rows("select count(*) from sessions") == [(200,)]
    assert await access.logins.verify(opened.secret, "10.0.0.1")


@pytest.mark.spec("GTW-030", "GTW-031", "GTW-036")
async def test_a_token_is_kept_hashed_and_ends_when_deleted_or_expired(access: Access) -> None:
    made = await access.tokens.create("script", ["chat", "read", "read"], 30, OWNER)
    assert made.secret.startswith("crew_")
    assert list(made.row.scopes) == ["read", "chat"]
    who = await access.tokens.verify(made.secret, "10.0.0.5")
    assert who is not None
    assert (who.kind, who.name, who.decider, who.address) == ("token", "script", "token:script", "10.0.0.5")
    (listed,) = await access.tokens.list()
    assert listed.last_used_at is not None
    everything = json.dumps([access.rows(f"select t::text from {t} t") for t in TABLES], default=str)
    assert made.secret not in everything
    access.change("update api_tokens set expires_at = now() - interval '1 second'")
    assert await access.tokens.verify(made.secret, "10.0.0.5") is None
    access.change("update api_tokens set expires_at = null")
    assert await access.tokens.verify(made.secret, "10.0.0.5")
    await access.tokens.delete(made.row.id, OWNER)
    assert await access.tokens.verify(made.secret, "10.0.0.5") is None
    await fails(NotFound, access.tokens.delete(made.row.id, OWNER))
    await fails(NotFound, access.tokens.delete("not an id'; drop table api_tokens; --", OWNER))
    assert access.events() == ["token_created", "token_deleted"]
    assert access.rows("select about, address from audit.access order by id") == [
        ("script: read chat", "10.0.0.1"),
        ("script", "10.0.0.1"),
    ]


@pytest.mark.parametrize(
    ("name", "scopes", "days"),
    [
        ("", ["read"], None),
        ("   ", ["read"], None),
        ("x" * 65, ["read"], None),
        ("a\nb", ["read"], None),
        ("ok", [], None),
        ("ok", ["owner"], None),
        ("ok", ["read", "internal"], None),
        ("ok", ["public"], None),
        ("ok", ["*"], None),
        ("ok", ["read"], 0),
        ("ok", ["read"], -1),
        ("ok", ["read"], 3651),
    ],
)
@pytest.mark.spec("GTW-031", "GTW-032")
async def test_tokens_that_cannot_be(access: Access, name: str, scopes: list[str], days: int | None) -> None:
    await fails(Invalid, access.tokens.create(name, scopes, days, OWNER))
    assert await access.tokens.list() == []


async def test_names_of_tokens_are_taken_once_and_tokens_are_bounded(access: Access) -> None:
    results = await asyncio.gather(
        *(access.tokens.create("same", ["read"], None, OWNER) for _ in range(5)), return_exceptions=True
    )
    assert sum(isinstance(result, Conflict) for result in results) == 4
    access.change(
        "insert into api_tokens (id, name, secret_sha256, scopes) select gen_random_uuid(), 'n' || n, "
        "sha256(n::text::bytea), '{read}' from generate_series(1, 99) n"
    )
    await fails(LimitReached, access.tokens.create("one more", ["read"], None, OWNER))


async def test_a_session_is_no_token_and_a_token_no_session(access: Access) -> None:
    await access.logins.set_password(PASSWORD, Principal("terminal"))
    session = await access.logins.log_in(PASSWORD, "10.0.0.1")
    token = await access.tokens.create("script", ["read"], None, OWNER)
    assert await access.tokens.verify(session.secret, "") is None
    assert await access.tokens.verify("crew_" + session.secret, "") is None
    assert await access.logins.verify(token.secret, "") is None
    for odd in ("", "crew_", "x" * 10_000, "crew_\x01"):
        assert await access.tokens.verify(odd, "") is None
        assert await access.logins.verify(odd, "") is None


@pytest.mark.spec("GTW-036")
async def test_a_refusal_in_a_loop_is_recorded_once_a_minute(access: Access) -> None:
    script = Principal("token", "t1", name="script", scopes=("read",), address="10.0.0.5")
    for _ in range(50):
        await access.audit.denied(script, "chat", "/crew.v1.Turns/Send")
    await access.audit.denied(script, "approve", "/crew.v1.Turns/Decide")
    rows = access.rows("select event, kind, token_name, address, about from audit.access order by id")
    assert rows == [
        ("scope_denied", "token", "script", "10.0.0.5", "chat /crew.v1.Turns/Send"),
        ("scope_denied", "token", "script", "10.0.0.5", "approve /crew.v1.Turns/Decide"),
    ]


@pytest.mark.spec("GTW-036")
@pytest.mark.parametrize(
    "statement",
    [
        "update audit.access set address = ''",
        "delete from audit.access",
        "truncate audit.access",
        "drop table audit.access",
        "alter table audit.access add column x int",
        "insert into audit.access (at, event, kind) values ('2001-01-01', 'login', 'session')",
        "insert into audit.access (id, event, kind) overriding system value values (1, 'login', 'session')",
        "delete from audit.access_rest",
        "update audit.access_rest set kind = 'x'",
        "select * from audit.access for update",
    ],
)
async def test_the_record_can_be_added_to_and_read_alone(access: Access, statement: str) -> None:
    await access.audit.record("login", OWNER)
    async with access.database.connection() as connection:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await connection.execute(statement)  # type: ignore[arg-type]
    assert access.events() == ["login"]


@pytest.mark.spec("GTW-025")
async def test_the_password_is_set_in_the_terminal(access: Access) -> None:
    async def run(password: str) -> tuple[int | None, str]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "services.orchestrator.access", "set-password"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"MY_AGENT_DATABASE_URL": access.scratch.url, "MY_AGENT_LANGUAGE": "vi", "PATH": ""},
        )
        out, err = await asyncio.wait_for(process.communicate(password.encode()), 60)
        return process.returncode, (out + err).decode()

    code, said = await run("short\n")
    assert (code, "8 đến 1000" in said) == (1, True)
    code, said = await run("set in the terminal\n")
    assert code == 0, said
    assert "set in the terminal" not in said
    assert await access.logins.log_in("set in the terminal", "10.0.0.1")


async def test_too_many_logins_at_once_are_held_back() -> None:
    passwords = Passwords(PasswordHasher(time_cost=2, memory_cost=8192, parallelism=1))
    results = await asyncio.gather(*(passwords.verify("x", None) for _ in range(60)), return_exceptions=True)
    assert any(isinstance(result, LimitReached) for result in results)
    assert any(result is False for result in results)
    assert await passwords.verify("x", None) is False
