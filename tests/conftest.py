pytest_plugins = ["tests.fixtures.postgres", "tests.fixtures.crew", "tests.fixtures.model_server.fixture"]
