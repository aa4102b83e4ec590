"""The fixtures, as another project's tests use them: in a pytest run of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tavola

pytestmark = pytest.mark.slow  # a pytest in a pytest: `make slow` runs it

pytest_plugins = ["pytester"]

SOURCE = str(Path(tavola.__file__).parents[1])


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Another project, in which the plugin is loaded by name, whether Tavola is installed or not."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", SOURCE)
    for name in (
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_DEFAULT_REGION",
        "AWS_REGION",
        "AWS_PROFILE",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return pytester


def run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Run the project's tests in a process of its own."""
    return project.runpytest_subprocess("-p", "tavola.pytest_plugin", "-W", "error", *arguments, timeout=50)


def test_loading_the_plugin_imports_nothing() -> None:
    """A run that never touches DynamoDB pays nothing, and coverage tools see every import."""
    script = (
        "import pytest, sys\n"
        "before = set(sys.modules)\n"
        "import tavola.pytest_plugin\n"
        "print(*sorted(set(sys.modules) - before))\n"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", script], env={"PYTHONPATH": SOURCE}, capture_output=True, text=True, check=True
    )

    assert loaded.stdout.split() == ["tavola", "tavola.pytest_plugin"]


def test_an_idle_run_imports_nothing(project: pytest.Pytester) -> None:
    """With the plugin on, a test that asks for no fixture finds neither engine nor botocore loaded."""
    project.makepyfile(
        """
        import sys

        def test_idle():
            loaded = {name for name in sys.modules if name.startswith(("tavola.", "botocore", "apsw", "msgspec"))}
            assert loaded == {"tavola.pytest_plugin"}
        """
    )
    run(project).assert_outcomes(passed=1)


FIXTURES = """
    import subprocess, sys, boto3, pytest

    def scan(client):
        return client.scan(TableName="Orders")["Items"]

    @pytest.mark.parametrize("turn", range(3))
    def test_each_test_is_empty(tavola, tavola_table, turn):
        assert tavola.call("ListTables") == {"TableNames": []}
        assert tavola_table("Orders", pk="S") == "Orders"
        tavola.call("PutItem", {"TableName": "Orders", "Item": {"pk": {"S": "a"}}})

    def test_tables_in_few_words(tavola, tavola_table):
        tavola_table(
            "Orders", pk="S", sk="N",
            indexes={"by_customer": {"customer": "S", "sk": "N"}, "by_state": {"state": "B"}},
            local_indexes={"by_date": {"date": "S"}},
        )
        table = tavola.call("DescribeTable", {"TableName": "Orders"})["Table"]
        def keys(of):
            return [(key["AttributeName"], key["KeyType"]) for key in of["KeySchema"]]
        def indexes(member):
            return {index["IndexName"]: keys(index) for index in table[member]}
        assert table["TableStatus"] == "ACTIVE"
        assert keys(table) == [("pk", "HASH"), ("sk", "RANGE")]
        assert indexes("GlobalSecondaryIndexes") == {
            "by_customer": [("customer", "HASH"), ("sk", "RANGE")], "by_state": [("state", "HASH")]}
        assert indexes("LocalSecondaryIndexes") == {"by_date": [("pk", "HASH"), ("date", "RANGE")]}

    def test_tables_that_cannot_be(tavola_table):
        with pytest.raises(TypeError, match="Orders needs a partition key"):
            tavola_table("Orders")
        with pytest.raises(TypeError, match="a, b, c"):
            tavola_table("Orders", a="S", b="S", c="S")
        with pytest.raises(TypeError, match="pk is S in one key and N in another"):
            tavola_table("Orders", pk="S", indexes={"other": {"pk": "N"}})

    def test_boto3(tavola, tavola_mock, tavola_table):
        tavola_table("Orders", pk="S")
        boto3.resource("dynamodb").Table("Orders").put_item(Item={"pk": "a"})
        assert tavola.call("Scan", {"TableName": "Orders"})["Items"] == [{"pk": {"S": "a"}}]

    def test_boto3_is_itself_without_the_fixture():
        with pytest.raises(Exception, match="region"):
            boto3.client("dynamodb")

    def test_another_process(tavola, tavola_endpoint, tavola_table):
        tavola_table("Orders", pk="S")
        script = ("import boto3; boto3.client('dynamodb').put_item("
                  "TableName='Orders', Item={'pk': {'S': 'a'}})")
        subprocess.run([sys.executable, "-c", script], env=tavola_endpoint.environment, check=True)
        assert tavola.call("Scan", {"TableName": "Orders"})["Items"] == [{"pk": {"S": "a"}}]

    def test_a_server_for_each(tavola_endpoint):
        import tavola
        with tavola.connect(tavola_endpoint.url, account=tavola_endpoint.account) as connection:
            assert connection.call("ListTables") == {"TableNames": []}

    def test_the_clock(tavola_clock, tavola, tavola_table):
        tavola_clock.set(1_000_000_000)
        tavola_table("Orders", pk="S")
        made = tavola.call("DescribeTable", {"TableName": "Orders"})["Table"]["CreationDateTime"]
        assert made == 1_000_000_000

    def test_the_clock_may_come_last(tavola, tavola_clock):
        tavola_clock.advance(10)
        assert tavola.call("ListTables") == {"TableNames": []}
"""


def test_the_fixtures(project: pytest.Pytester) -> None:
    """Each test has an empty engine, and all its fixtures look at that one."""
    project.makepyfile(FIXTURES)

    run(project).assert_outcomes(passed=11)


def test_the_fixtures_under_xdist(project: pytest.Pytester) -> None:
    """Workers share nothing, not even a port."""
    project.makepyfile(FIXTURES)

    run(project, "-p", "xdist", "-n", "2").assert_outcomes(passed=11)


def test_the_region_is_a_setting(project: pytest.Pytester) -> None:
    """A project in another region says so once, for tables, boto3 and endpoint alike."""
    project.makeini("[pytest]\ntavola_region = eu-west-1\n")
    project.makepyfile(
        """
        import boto3

        def test_region(tavola_table, tavola_mock, tavola_endpoint):
            tavola_table("Orders", pk="S")
            client = boto3.client("dynamodb")
            assert client.meta.region_name == tavola_endpoint.region == "eu-west-1"
            assert client.list_tables()["TableNames"] == ["Orders"]
        """
    )
    run(project).assert_outcomes(passed=1)


def test_an_empty_engine_is_quick(project: pytest.Pytester) -> None:
    """The fixture takes less than 2 ms as a rule, the first one's imports aside."""
    project.makeconftest(
        """
        import time
        import pytest

        TAKEN_S = []

        @pytest.hookimpl(wrapper=True)
        def pytest_fixture_setup(fixturedef, request):
            start_s = time.perf_counter()
            made = yield
            if fixturedef.argname == "tavola":
                TAKEN_S.append(time.perf_counter() - start_s)
            return made

        @pytest.fixture
        def taken_s():
            return TAKEN_S
        """
    )
    project.makepyfile(
        """
        import statistics
        import pytest

        @pytest.mark.parametrize("turn", range(41))
        def test_empty(tavola, turn):
            assert tavola.call("ListTables") == {"TableNames": []}

        def test_quick(taken_s):
            assert len(taken_s) == 41
            assert statistics.median(taken_s[1:]) < 0.002, sorted(taken_s)
        """
    )
    run(project).assert_outcomes(passed=42)
