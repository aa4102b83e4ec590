"""Retention, recovery, the access log, encryption, and policies that hold against a client that bypasses the library."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from fastapi.testclient import TestClient

from tavola import (
    AccessDeniedFault,
    Credentials,
    Engine,
    ManualClock,
    StoreError,
    Table,
    connect,
    connect_async,
    from_item,
    to_item,
)
from tavola.apps.shell import AppSettings
from tavola.apps.terraform_review import policies, service
from tavola.apps.terraform_review.domain import EDITABLE_FOR, RETENTION, ReviewStatus
from tavola.apps.terraform_review.errors import ReviewClosed
from tavola.apps.terraform_review.model import (
    IMMUTABLE_PREFIXES,
    Review,
    ReviewFinding,
    Reviews,
    ReviewVersion,
    table_name,
)
from tavola.apps.terraform_review.results import Assessment
from tavola.apps.terraform_review.store import ReviewStore
from tavola.apps.terraform_review.verification import verify_review
from tavola.apps.terraform_review.web import create
from tavola.clock import SYSTEM_CLOCK, pause
from tavola.iam import DirectoryFile
from tavola.patterns import FolderBlobs, HistoryAhead
from tavola.server.access_log import AccessLog
from tavola.server.authorization import StrictCallers
from tavola.server.listener import running
from tavola.server.log_queries import decision_of
from tavola.server.safeguards import Safeguards
from tests.apps.conftest import Run, Target
from tests.apps.terraform_review.conftest import ReviewHistory, finding, fix_of, open_history, result
from tests.server.directories import ACCOUNT, WRITER, user, write_directory

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

REGION = "us-east-1"
TABLE = Reviews.settings.name
SERVICE = ("AKIDSERVICE", "service/secret")
READER = ("AKIDLOOKS", "looks/secret")
PROJECTOR = ("AKIDCOUNTS", "counts/secret")
KEEPER = ("AKIDKEEPS", "keeps/secret")


# R8: retention and recovery.


def test_r08_everything_expires_at_once_seven_years_after_it_could_change(
    history: ReviewHistory, run: Run[Any]
) -> None:
    """Each item of a review carries one time to live, whichever version it came with: each is kept for 2,555 days at least."""

    async def work() -> None:
        review = await history.record("run-1", "A")
        history.clock.advance((EDITABLE_FOR - timedelta(days=1)).total_seconds())
        review = await service.add_version(
            history.store, review.review_id, Assessment(findings=(finding("A"), finding("B"))), by="eng-02"
        )
        ends = {"N": str(int((review.created_at + EDITABLE_FOR + RETENTION).timestamp()))}
        assert review.changed_at + RETENTION < review.created_at + EDITABLE_FOR + RETENTION
        seen = set()
        page = await history.db.scan_table(Reviews)
        async for entity in page:
            seen.add(type(entity).__name__)
            assert to_item(entity)["TTL"] == ends
        assert seen == {"Review", "ReviewVersion", "ReviewAudit", "ReviewFinding", "RunReview"}

    run(work())


def test_r08_what_is_over_is_deleted(run: Run[Any], clock: ManualClock, tmp_path: Path) -> None:
    """A review is there to its last second, hidden after it, and deleted by the table itself."""

    async def work(history: ReviewHistory) -> None:
        review = await history.record("run-1", "A")
        history.clock.advance((EDITABLE_FOR + RETENTION).total_seconds() - 5)
        assert (await service.get_review(history.store, review.review_id)).version == 1
        history.clock.advance(10)
        assert await service.latest_run_review(history.store, "run-1") is None
        assert not (await service.list_stack_reviews(history.store, "prod-net")).items
        for _ in range(20):
            history.clock.advance(120)
            await history.db.call("ListTables")
        scan = await history.db.call("Scan", {"TableName": TABLE})
        assert scan["Count"] == 0

    with open_history(Target("memory", "memory:", ""), run, clock, tmp_path) as history:
        run(work(history))


def test_r08_no_part_of_a_review_goes_before_it(run: Run[Any], clock: ManualClock, tmp_path: Path) -> None:
    """Of a review that was changed months after it was made everything is there to its end, and it verifies; after a year it is closed."""

    async def work(history: ReviewHistory) -> None:
        review = await history.record("run-1", "A", "B")
        history.clock.advance(300 * 86400)
        again = Assessment(findings=(finding("A"), finding("B")), overall_risk_score=Decimal("0.5"))
        await service.add_version(history.store, review.review_id, again, by="eng-02")
        history.clock.advance(65 * 86400)
        with pytest.raises(ReviewClosed, match="record a new run"):
            await service.change_status(history.store, review.review_id, ReviewStatus.PENDING, by="eng-02")
        history.clock.advance(RETENTION.total_seconds() - 86400)
        for _ in range(20):
            history.clock.advance(120)
            await history.db.call("ListTables")
        last = await service.latest_run_review(history.store, "run-1")
        assert last is not None
        assert len(await service.list_findings(history.store, last)) == last.findings_total == 2
        assert [each.version for each in await service.list_versions(history.store, review.review_id)] == [
            2,
            1,
        ]
        assert await verify_review(history.store, review.review_id)

    with open_history(Target("memory", "memory:", ""), run, clock, tmp_path) as history:
        run(work(history))


def test_r08_the_table_recovers_to_any_moment_of_35_days(
    run: Run[Any], clock: ManualClock, tmp_path: Path
) -> None:
    """Recovery is on for 35 days: what was erased comes back in a table of another name, reviews and statistics alike."""

    async def work(history: ReviewHistory) -> None:
        review = await history.record("run-1", "A")
        await history.count()
        backups = await history.db.call("DescribeContinuousBackups", {"TableName": TABLE})
        recovery = backups["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
        assert (recovery["PointInTimeRecoveryStatus"], recovery["RecoveryPeriodInDays"]) == ("ENABLED", 35)
        history.clock.advance(60)
        before = history.clock.now()
        history.clock.advance(60)
        await history.db.delete(Review.Key(review_id=review.review_id))
        await history.db.delete(ReviewVersion.Key(review_id=review.review_id, version=1), erase=True)
        await history.db.call(
            "RestoreTableToPointInTime",
            {"SourceTableName": TABLE, "TargetTableName": f"{TABLE}-restored-1", "RestoreDateTime": before},
        )
        items = (await history.db.call("Scan", {"TableName": f"{TABLE}-restored-1"}))["Items"]
        kinds = {item["EntityType"]["S"] for item in items}
        assert {"REVIEW", "REVIEW_VERSION", "FINDING", "STACK_STATS", "MARK"} <= kinds
        (back,) = (item for item in items if item["EntityType"]["S"] == "REVIEW")
        assert from_item(Review, back) == review

    with open_history(Target("memory", "memory:", ""), run, clock, tmp_path) as history:
        run(work(history))


def test_r08_a_backup_is_restored(run: Run[Any], clock: ManualClock, tmp_path: Path) -> None:
    """A backup on demand holds the table of its moment, and a table made of it serves the application."""

    async def work(history: ReviewHistory) -> None:
        review = await history.record("run-1", "A")
        made = await history.db.call("CreateBackup", {"TableName": TABLE, "BackupName": "weekly"})
        await service.change_status(history.store, review.review_id, ReviewStatus.PENDING, by="eng-01")
        arn = made["BackupDetails"]["BackupArn"]
        await history.db.call(
            "RestoreTableFromBackup", {"BackupArn": arn, "TargetTableName": f"{TABLE}-restored-2"}
        )
        item = await history.db.call(
            "GetItem",
            {
                "TableName": f"{TABLE}-restored-2",
                "Key": {"PK": {"S": f"REVIEW#{review.review_id}"}, "SK": {"S": "CURRENT"}},
            },
        )
        assert from_item(Review, item["Item"]).version == 1
        assert (await service.get_review(history.store, review.review_id)).version == 2

    with open_history(Target("memory", "memory:", ""), run, clock, tmp_path) as history:
        run(work(history))


def test_the_table_is_named_by_its_environment(run: Run[Any], tmp_path: Path) -> None:
    """The same model serves any environment: the name is a setting of the connection."""

    async def work() -> list[str]:
        names: dict[type[Table], str] = {Reviews: table_name("prod")}
        async with connect_async("memory:", table_names=names) as db:
            await ReviewStore(db, FolderBlobs(tmp_path)).create_tables()
            found: list[str] = (await db.call("ListTables"))["TableNames"]
            return found

    assert run(work()) == ["terraform-spacelift-ai-reviewer-reviews-prod"]


# R9, R10: who asks for what.


@dataclass(slots=True)
class Strict:
    """A server that verifies each caller and lets policies decide, with an access log."""

    url: str
    folder: Path
    run: Run[Any]
    _log: AccessLog

    def boto(self, key: tuple[str, str]) -> DynamoDBClient:
        """Return a raw client with somebody's key."""
        client: DynamoDBClient = boto3.client(
            "dynamodb", endpoint_url=self.url, region_name=REGION, aws_access_key_id=key[0],
            aws_secret_access_key=key[1], config=Config(retries={"total_max_attempts": 1}),
        )  # fmt: skip
        return client

    def work(self, key: tuple[str, str], work: Callable[[ReviewStore], Coroutine[Any, Any, Any]]) -> Any:
        """Return what work comes to that is given a store with somebody's key."""

        async def whole() -> Any:
            async with connect_async(self.url, region=REGION, credentials=Credentials(*key)) as db:
                return await work(ReviewStore(db, FolderBlobs(self.folder / "blobs")))

        return self.run(whole())

    def records(self) -> list[dict[str, Any]]:
        """Return what the access log has, with everything in it."""
        self._log.close()
        return [json.loads(line) for line in (self.folder / "access.log").read_text().splitlines()]


@contextmanager
def _strict(folder: Path, run: Run[Any]) -> Iterator[Strict]:
    directory = write_directory(
        folder / "iam.json",
        service=user(SERVICE, policies.service(REGION, ACCOUNT)),
        looks=user(READER, policies.reader(REGION, ACCOUNT)),
        counts=user(PROJECTOR, policies.projector(REGION, ACCOUNT)),
        keeps=user(KEEPER, policies.keeper(REGION, ACCOUNT)),
    )
    log = AccessLog(folder / "access.log")
    safeguards = Safeguards(callers=StrictCallers(DirectoryFile(directory), SYSTEM_CLOCK), log=log)
    with Engine.open() as engine, running(engine, safeguards=safeguards) as endpoint:
        with connect(endpoint.url, region=REGION, credentials=Credentials(*WRITER)) as db:
            db.create_tables(Reviews)
        yield Strict(endpoint.url, folder, run, log)


@pytest.fixture
def strict(tmp_path: Path, run: Run[Any]) -> Iterator[Strict]:
    with _strict(tmp_path, run) as found:
        yield found


async def _life(store: ReviewStore) -> Review:
    submitted = result("run-1", *(f"Issue {number}" for number in range(95)))
    review = (await service.record_review(store, submitted, idempotency_key="key-1")).review
    review = await service.apply_fix(store, review.review_id, fix_of(review, "Issue 0"), by="eng-02")
    assert await verify_review(store, review.review_id)
    assert len(await service.list_findings(store, review)) == 94
    assert (await service.list_stack_reviews(store, "prod-net")).items
    assert (await service.list_changes_by(store, "eng-02")).items
    return review


def test_r10_each_identity_does_its_work_with_its_own_policy(strict: Strict) -> None:
    """The application reads and records, the projector follows and rebuilds, the reader reads; nobody needs more."""
    review: Review = strict.work(SERVICE, _life)

    async def count(store: ReviewStore) -> int:
        found = await store.projector.follow(await store.db.subscribe(Reviews, from_="start", follow=False))
        await store.projector.rebuild()
        return found

    assert strict.work(PROJECTOR, count) > 100

    async def look(store: ReviewStore) -> None:
        assert (await service.get_review(store, review.review_id)).version == 2
        stats = await service.get_stack_stats(store, "prod-net")
        assert stats is not None
        assert stats.total_findings == 94
        with pytest.raises(AccessDeniedFault):
            await service.change_status(store, review.review_id, ReviewStatus.PENDING, by="eng-09")
        with pytest.raises(AccessDeniedFault):
            await store.projector.recount()

    strict.work(READER, look)
    made = strict.boto(KEEPER).create_backup(TableName=TABLE, BackupName="weekly")
    arn = made["BackupDetails"]["BackupArn"]
    with pytest.raises(ClientError, match="AccessDenied"):
        strict.boto(KEEPER).delete_backup(BackupArn=arn)
    with pytest.raises(ClientError, match="AccessDenied"):
        strict.boto(KEEPER).get_item(TableName=TABLE, Key={"PK": {"S": "DAYS"}, "SK": {"S": "x"}})


def _rewrites(item: dict[str, Any]) -> dict[str, Callable[[DynamoDBClient], object]]:
    """Return every way in which a client could write over an item, or take it away."""
    key = {name: item[name] for name in ("PK", "SK")}
    where = f"WHERE PK = '{key['PK']['S']}' AND SK = '{key['SK']['S']}'"
    forged = {**item, "ReviewId": {"S": "forged"}}
    setting = {
        "UpdateExpression": "SET ReviewId = :f",
        "ExpressionAttributeValues": {":f": {"S": "forged"}},
    }
    update = f"UPDATE \"{TABLE}\" SET ReviewId = 'forged' {where}"
    delete = f'DELETE FROM "{TABLE}" {where}'
    insert = f"INSERT INTO \"{TABLE}\" VALUE {{'PK': '{key['PK']['S']}', 'SK': 'x'}}"

    def transact(**action: Any) -> Callable[[DynamoDBClient], object]:
        return lambda client: client.transact_write_items(
            TransactItems=[{name: {"TableName": TABLE, **request} for name, request in action.items()}]  # type: ignore[list-item]
        )

    return {
        "PutItem": lambda client: client.put_item(TableName=TABLE, Item=forged),
        "UpdateItem": lambda client: client.update_item(TableName=TABLE, Key=key, **setting),
        "DeleteItem": lambda client: client.delete_item(TableName=TABLE, Key=key),
        "BatchWriteItem put": lambda client: client.batch_write_item(
            RequestItems={TABLE: [{"PutRequest": {"Item": forged}}]}
        ),
        "BatchWriteItem delete": lambda client: client.batch_write_item(
            RequestItems={TABLE: [{"DeleteRequest": {"Key": key}}]}
        ),
        "TransactWriteItems Update": transact(Update={"Key": key, **setting}),
        "TransactWriteItems Delete": transact(Delete={"Key": key}),
        "PartiQL insert": lambda client: client.execute_statement(Statement=insert),
        "PartiQL update": lambda client: client.execute_statement(Statement=update),
        "PartiQL delete": lambda client: client.execute_statement(Statement=delete),
        "PartiQL transaction": lambda client: client.execute_transaction(
            TransactStatements=[{"Statement": update}]
        ),
        "PartiQL batch": lambda client: _first_error(
            client.batch_execute_statement(Statements=[{"Statement": update}])
        ),
    }


def _first_error(answer: Any) -> None:
    """Raise what a batch of statements tells of its first."""
    error = answer["Responses"][0].get("Error")
    if error is not None:
        raise ClientError({"Error": error}, "BatchExecuteStatement")


def _facts(client: DynamoDBClient) -> dict[str, dict[str, Any]]:
    """Return one item of each kind that is never written again."""
    found: dict[str, dict[str, Any]] = {}
    for item in client.scan(TableName=TABLE)["Items"]:
        if item["PK"]["S"].startswith(IMMUTABLE_PREFIXES):
            found.setdefault(item["EntityType"]["S"], dict(item))
    return found


def test_wrong_23_a_client_that_bypasses_the_library_rewrites_nothing(strict: Strict) -> None:
    """Pitfall 23: with the application's own key, boto3 can change no version, audit row, finding or link in any way but one."""

    async def record(store: ReviewStore) -> None:
        await service.record_review(store, result("run-1", "A"))

    strict.work(SERVICE, record)
    before = strict.boto(WRITER).scan(TableName=TABLE)["Items"]
    facts = _facts(strict.boto(WRITER))
    assert facts.keys() == {"REVIEW_VERSION", "REVIEW_AUDIT", "FINDING", "RUN_REVIEW"}

    client = strict.boto(SERVICE)
    for kind, item in facts.items():
        for way, rewrite in _rewrites(item).items():
            with pytest.raises(ClientError) as refused:
                rewrite(client)
            assert "AccessDenied" in refused.value.response["Error"]["Code"], (kind, way, refused.value)
    assert strict.boto(WRITER).scan(TableName=TABLE)["Items"] == before


def test_wrong_23_the_denial_alone_holds_against_who_may_do_everything(tmp_path: Path, run: Run[Any]) -> None:
    """Pitfall 23: added to a key that is allowed every action, the denial alone refuses the same ways; what is derived stays writable."""
    everything = {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "dynamodb:*", "Resource": "*"}],
    }
    with _strict(tmp_path, run) as strict:

        async def record(store: ReviewStore) -> None:
            await service.record_review(store, result("run-1", "A"))
            await store.projector.rebuild()

        strict.work(PROJECTOR, record)
        facts = _facts(strict.boto(WRITER))
        admin = ("AKIDADMIN", "admin/secret")
        held = (everything, policies.immutability(REGION, ACCOUNT))
        write_directory(tmp_path / "again.json", admin=user(admin, *held))
    with Engine.open() as engine:
        callers = StrictCallers(DirectoryFile(tmp_path / "again.json"), SYSTEM_CLOCK)
        with running(engine, safeguards=Safeguards(callers=callers)) as endpoint:
            client: DynamoDBClient = boto3.client(
                "dynamodb", endpoint_url=endpoint.url, region_name=REGION, aws_access_key_id=admin[0],
                aws_secret_access_key=admin[1], config=Config(retries={"total_max_attempts": 1}),
            )  # fmt: skip
            with connect(endpoint.url, region=REGION, credentials=Credentials(*WRITER)) as db:
                db.create_tables(Reviews)
            for item in facts.values():
                client.transact_write_items(TransactItems=[{"Put": {"TableName": TABLE, "Item": item}}])
                for way, rewrite in _rewrites(item).items():
                    with pytest.raises(ClientError) as refused:
                        rewrite(client)
                    assert "AccessDenied" in refused.value.response["Error"]["Code"], way
            made = client.create_backup(TableName=TABLE, BackupName="weekly")["BackupDetails"]["BackupArn"]
            endings: dict[str, Callable[[], object]] = {
                "backup": lambda: client.delete_backup(BackupArn=made),
                "expiry": lambda: client.update_time_to_live(
                    TableName=TABLE, TimeToLiveSpecification={"Enabled": False, "AttributeName": "TTL"}
                ),
                "recovery": lambda: client.update_continuous_backups(
                    TableName=TABLE,
                    PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": False},
                ),
                "table": lambda: client.delete_table(TableName=TABLE),
            }
            for way, end in endings.items():
                with pytest.raises(ClientError) as refused:
                    end()
                assert "AccessDenied" in refused.value.response["Error"]["Code"], way
            stats = {"PK": {"S": "STACK#prod-net"}, "SK": {"S": "STATS"}}
            client.put_item(TableName=TABLE, Item={**stats, "TotalReviews": {"N": "1"}})
            client.delete_item(TableName=TABLE, Key=stats)


@pytest.mark.parametrize("kind", ["REVIEW_VERSION", "REVIEW_AUDIT", "FINDING", "RUN_REVIEW"])
def test_wrong_23_what_no_policy_can_forbid_is_found(strict: Strict, kind: str) -> None:
    """Pitfall 23: a put in a transaction without a condition is what IAM lets through; the seals show it."""

    async def record(store: ReviewStore) -> str:
        review = (await service.record_review(store, result("run-1", "A", "B"))).review
        await service.apply_fix(store, review.review_id, fix_of(review, "A"), by="eng-02")
        assert await verify_review(store, review.review_id)
        return review.review_id

    review_id = strict.work(SERVICE, record)
    item = _facts(strict.boto(WRITER))[kind]
    forged = {**item, ("ReviewId" if kind == "RUN_REVIEW" else "StackId"): {"S": "prod-forged"}}
    strict.boto(SERVICE).transact_write_items(TransactItems=[{"Put": {"TableName": TABLE, "Item": forged}}])

    verification = strict.work(SERVICE, lambda store: verify_review(store, review_id))
    assert not verification
    assert "altered" in " ".join(problem.what for problem in verification.problems)


def test_wrong_23_a_current_record_set_back_is_found(strict: Strict) -> None:
    """Pitfall 23: the current record may be replaced by the application's key; one that was set back to version 1 shows in its history."""

    async def record(store: ReviewStore) -> Review:
        return (await service.record_review(store, result("run-1", "A"))).review

    async def fix(store: ReviewStore) -> None:
        await service.apply_fix(store, review.review_id, fix_of(review, "A"), by="eng-02")

    review: Review = strict.work(SERVICE, record)
    key = {"PK": {"S": f"REVIEW#{review.review_id}"}, "SK": {"S": "CURRENT"}}
    first = strict.boto(SERVICE).get_item(TableName=TABLE, Key=key)["Item"]
    strict.work(SERVICE, fix)
    strict.boto(SERVICE).put_item(TableName=TABLE, Item=first)
    verification = strict.work(SERVICE, lambda store: verify_review(store, review.review_id))
    assert {problem.what for problem in verification.problems} == {
        "there is a version past the current record",
        "there is an audit row past the current record",
    }

    async def change(store: ReviewStore) -> None:
        with pytest.raises(HistoryAhead, match=r"run verify\(\)"):
            await service.change_status(store, review.review_id, ReviewStatus.PENDING, by="eng-03")

    strict.work(SERVICE, change)


def _ready(client: TestClient) -> bool:
    """Return whether the application says that it follows; if not, a moment later."""
    if client.get("/readyz").status_code == 200:
        return True
    pause(0.01)
    return False


@pytest.mark.parametrize("key", [PROJECTOR, SERVICE])
def test_r10_the_application_starts_with_its_own_policy(
    strict: Strict, key: tuple[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With the table there, a server starts without the right to make one; with the projector's policy it also counts."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key[0])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key[1])
    settings = AppSettings(target=strict.url, region=REGION, state=tmp_path / "state", poll_s=0.05)
    with TestClient(create(settings), base_url="http://127.0.0.1") as client:
        response = client.post("/reviews", json=result("run-1", "A").model_dump(mode="json"))
        assert response.status_code == 201
        if key is PROJECTOR:
            assert any(_ready(client) for _ in range(500))


def test_r10_a_finding_that_is_gone_is_found(history: ReviewHistory, run: Run[Any]) -> None:
    """A finding that was erased behind the review's back is told by its id."""

    async def work() -> None:
        review = await history.record("run-1", "A", findings=(finding("A", finding_id="find-1"),))
        await history.db.delete(
            ReviewFinding.Key(finding_id="find-1", review_id=review.review_id), erase=True
        )
        verification = await verify_review(history.store, review.review_id)
        assert [problem.what for problem in verification.problems] == ["the finding find-1 is missing"]

    run(work())


def test_r09_every_call_is_logged_and_the_refused_ones_too(strict: Strict) -> None:
    """The access log has each call of each identity, who asked, what was decided; a refusal is told apart, and no content is there."""
    strict.work(SERVICE, _life)
    item = _facts(strict.boto(WRITER))["REVIEW_VERSION"]
    for rewrite in _rewrites(item).values():
        with pytest.raises(ClientError):
            rewrite(strict.boto(SERVICE))
    with pytest.raises(ClientError):
        strict.boto(("AKIDNOBODY", "x")).list_tables()

    lines = strict.records()
    decisions = {(line["eventName"], decision_of(line)) for line in lines}
    assert {
        ("TransactWriteItems", "allowed"),
        ("Query", "allowed"),
        ("PutItem", "denied"),
        ("UpdateItem", "denied"),
        ("DeleteItem", "denied"),
        ("BatchWriteItem", "denied"),
        ("TransactWriteItems", "denied"),
        ("ExecuteStatement", "denied"),
        ("ListTables", "unauthenticated"),
    } <= decisions
    denied = [line for line in lines if decision_of(line) == "denied"]
    assert len(denied) == len(_rewrites(item))
    assert all("service" in json.dumps(line["userIdentity"]) for line in denied)
    whole = (strict.folder / "access.log").read_text()
    assert "Issue 0" not in whole
    assert "aws_s3_bucket" not in whole


def test_r10_the_data_is_encrypted_at_rest(run: Run[Any], clock: ManualClock, tmp_path: Path) -> None:
    """With a key the store's file tells nothing of a review, and opens with that key alone."""
    database = tmp_path / "reviews.db"

    async def write(key: str) -> str:
        async with connect_async(f"file:{database}", key=key, clock=clock) as db:
            store = ReviewStore(db, FolderBlobs(tmp_path / "blobs"))
            await store.create_tables()
            return (await service.record_review(store, result("run-visible", "A"))).review.review_id

    review_id = run(write("one line of text"))
    stored_bytes = b"".join(file.read_bytes() for file in tmp_path.iterdir() if file.is_file())
    assert len(stored_bytes) > 10_000
    assert b"run-visible" not in stored_bytes
    assert review_id.encode() not in stored_bytes
    with pytest.raises(StoreError):
        run(write("another"))
    assert run(write("one line of text")) == review_id
