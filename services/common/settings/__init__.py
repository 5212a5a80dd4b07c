"""Settings: ``config.yaml``, the environment, and the slice that each service gets of them.

`CrewConfig` is the whole of ``config.yaml`` with defaults filled in; `load_config` reads it, the
environment winning over the file (AGT-015). A service reads `OrchestratorSettings`,
`ToolsSettings`, `ScriptSandboxSettings` or `GatewaySettings` from the environment it was given and
sees nothing else.
"""

from services.common.settings.config import (
    DEFAULT_ROUTES,
    AgentBudget,
    Budgets,
    CrewConfig,
    Price,
    ToolHostEntry,
)
from services.common.settings.loading import LoadedConfig, Source, load_config
from services.common.settings.services import (
    GatewaySettings,
    OrchestratorSettings,
    ScriptSandboxSettings,
    ToolsSettings,
    is_loopback,
)
from services.common.variables import Variables, read_env_file

__all__ = [
    "DEFAULT_ROUTES",
    "AgentBudget",
    "Budgets",
    "CrewConfig",
    "GatewaySettings",
    "LoadedConfig",
    "OrchestratorSettings",
    "Price",
    "ScriptSandboxSettings",
    "Source",
    "ToolHostEntry",
    "ToolsSettings",
    "Variables",
    "is_loopback",
    "load_config",
    "read_env_file",
]
