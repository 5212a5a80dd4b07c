from tests.fixtures.gateway import run_folder

__all__ = ["run_folder"]
