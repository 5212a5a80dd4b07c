"""Where the owner is told to open the page."""

from __future__ import annotations

import pytest

from services.common.settings.services import GatewaySettings
from services.common.start import StartError
from services.gateway.app import page_address

_NEEDED = {"MY_AGENT_ORCHESTRATOR_ADDRESS": "orchestrator:7001", "MY_AGENT_SECRETS_DIR": "/secrets"}


def _settings(**variables: str) -> GatewaySettings:
    named = {f"MY_AGENT_{name.upper()}": value for name, value in variables.items()}
    return GatewaySettings.from_environment({**_NEEDED, **named})


@pytest.mark.spec("GTW-025")
@pytest.mark.parametrize(
    ("variables", "address"),
    [
        ({}, "http://127.0.0.1:8770"),
        ({"host": "0.0.0.0"}, "http://localhost:8770"),
        ({"host": "0.0.0.0", "published_address": "127.0.0.1:9000"}, "http://127.0.0.1:9000"),
        ({"host": "0.0.0.0", "published_address": "0.0.0.0:9000"}, "http://localhost:9000"),
        ({"host": "0.0.0.0", "published_address": "[::]:9000"}, "http://localhost:9000"),
        ({"host": "0.0.0.0", "published_address": "[fd00::1]:9000"}, "http://[fd00::1]:9000"),
        ({"host": "0.0.0.0", "published_address": ":9000"}, "http://localhost:9000"),
        ({"host": "0.0.0.0", "published_address": "192.168.1.5:80"}, "http://192.168.1.5:80"),
        (
            {"web_url": "https://crew.example", "published_address": "127.0.0.1:9000"},
            "https://crew.example",
        ),
    ],
)
def test_the_link_names_the_address_that_the_owner_will_really_open(
    variables: dict[str, str], address: str
) -> None:
    assert page_address(_settings(**variables), 8770) == address


@pytest.mark.parametrize("value", ["9000", "host:", "host:0", "a b:9000", "host:999999"])
def test_a_published_address_that_is_none_stops_the_start(value: str) -> None:
    with pytest.raises(StartError):
        _settings(published_address=value)
