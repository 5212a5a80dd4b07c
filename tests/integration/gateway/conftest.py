from tests.fixtures.gateway import gateway, guarded, run_folder

__all__ = ["gateway", "guarded", "run_folder"]
