"""The catalogue of the seed: issues that Terraform reviews find again and again, the code they are in, and the stacks that have them."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from tavola.apps.terraform_review.domain import Category, Severity

_S, _C, _R = Category.SECURITY, Category.COST, Category.RELIABILITY
_HIGH, _MEDIUM, _LOW = Severity.HIGH, Severity.MEDIUM, Severity.LOW


@dataclass(frozen=True, slots=True)
class Known:
    """An issue that is found often."""

    rule_id: str
    category: Category
    severity: Severity
    file_path: str
    title: str
    recommendation: str


@dataclass(frozen=True, slots=True)
class Lines:
    """The resource that an issue is found in: the line that is at fault, and as it is once that is fixed."""

    resource: str
    about: str
    wrong: str
    right: str


ISSUES = (
    Known("CKV_AWS_20", _S, _HIGH, "storage.tf", "Bucket can be read by anybody", "Set the ACL to private and block public access"),
    Known("CKV_AWS_53", _S, _HIGH, "storage.tf", "Public ACLs are not blocked", "Add a public access block with block_public_acls"),
    Known("CKV_AWS_19", _S, _MEDIUM, "storage.tf", "Bucket is not encrypted by default", "Configure server-side encryption"),
    Known("CKV_AWS_18", _S, _LOW, "storage.tf", "Bucket writes no access log", "Name a target bucket for access logs"),
    Known("CKV_AWS_21", _R, _MEDIUM, "storage.tf", "Bucket keeps no versions", "Enable versioning"),
    Known("CKV_AWS_24", _S, _HIGH, "network.tf", "SSH is open to the internet", "Allow port 22 from the management range alone"),
    Known("CKV_AWS_25", _S, _HIGH, "network.tf", "RDP is open to the internet", "Allow port 3389 from the management range alone"),
    Known("CKV_AWS_260", _S, _HIGH, "network.tf", "Port 80 is open to the internet", "Let the load balancer in, and nobody else"),
    Known("CKV_AWS_23", _S, _LOW, "network.tf", "Security group rule has no description", "Say what the rule is for"),
    Known("CKV2_AWS_11", _S, _MEDIUM, "network.tf", "Network has no flow log", "Add a flow log to the VPC"),
    Known("CKV_AWS_130", _S, _MEDIUM, "network.tf", "Subnet gives out public addresses", "Set map_public_ip_on_launch to false"),
    Known("CKV_AWS_16", _S, _HIGH, "database.tf", "Database storage is not encrypted", "Set storage_encrypted; it takes a new instance"),
    Known("CKV_AWS_17", _S, _HIGH, "database.tf", "Database can be reached from the internet", "Set publicly_accessible to false"),
    Known("CKV_AWS_161", _S, _MEDIUM, "database.tf", "Database takes passwords alone", "Enable IAM authentication"),
    Known("CKV_AWS_157", _R, _HIGH, "database.tf", "Database stands in one zone", "Set multi_az"),
    Known("CKV_AWS_133", _R, _HIGH, "database.tf", "Database has no backup", "Keep backups for at least a week"),
    Known("CKV_AWS_293", _R, _MEDIUM, "database.tf", "Database can be deleted by mistake", "Set deletion_protection"),
    Known("CKV_AWS_28", _R, _MEDIUM, "tables.tf", "Table has no point-in-time recovery", "Enable point_in_time_recovery"),
    Known("CKV_AWS_119", _S, _LOW, "tables.tf", "Table is not encrypted with an own key", "Name a KMS key in server_side_encryption"),
    Known("CKV_AWS_7", _S, _MEDIUM, "keys.tf", "Key is never rotated", "Set enable_key_rotation"),
    Known("CKV_AWS_33", _S, _HIGH, "keys.tf", "Key policy lets anybody use the key", "Name the principals of the key"),
    Known("CKV_AWS_40", _S, _LOW, "iam.tf", "Policy is attached to a user", "Attach it to a group or a role"),
    Known("CKV_AWS_62", _S, _HIGH, "iam.tf", "Policy allows everything", "List the actions and resources that are used"),
    Known("CKV_AWS_109", _S, _HIGH, "iam.tf", "Policy may change permissions without a bound", "Restrict the resources of iam actions"),
    Known("CKV_AWS_79", _S, _HIGH, "compute.tf", "Instance answers metadata requests of version 1", "Require tokens in metadata_options"),
    Known("CKV_AWS_8", _S, _MEDIUM, "compute.tf", "Volume is not encrypted", "Set encrypted on the block devices"),
    Known("CKV_AWS_126", _R, _LOW, "compute.tf", "Instance has no detailed monitoring", "Set monitoring to true"),
    Known("CKV_AWS_46", _S, _HIGH, "compute.tf", "User data holds a secret", "Read it from the secrets store at start"),
    Known("CKV_AWS_116", _R, _MEDIUM, "functions.tf", "Function has no dead letter queue", "Add a queue for events that fail"),
    Known("CKV_AWS_115", _R, _LOW, "functions.tf", "Function has no limit of its own", "Reserve concurrency"),
    Known("CKV_AWS_45", _S, _HIGH, "functions.tf", "Function's environment holds a key", "Take the key from the secrets store"),
    Known("CKV_AWS_91", _S, _LOW, "balancer.tf", "Load balancer writes no access log", "Enable access_logs"),
    Known("CKV_AWS_103", _S, _MEDIUM, "balancer.tf", "Listener speaks old TLS", "Choose a policy of TLS 1.2 or later"),
    Known("CKV_AWS_150", _R, _LOW, "balancer.tf", "Load balancer can be deleted by mistake", "Set enable_deletion_protection"),
    Known("COST_001", _C, _MEDIUM, "compute.tf", "Instance is larger than its load", "Take the next smaller type"),
    Known("COST_002", _C, _LOW, "storage.tf", "Old objects stay in the dearest class", "Add a lifecycle rule"),
    Known("COST_003", _C, _MEDIUM, "database.tf", "Replica serves no reads", "Remove it, or send reads to it"),
    Known("COST_004", _C, _LOW, "network.tf", "A NAT gateway in each zone of a test stack", "One is enough outside production"),
    Known("COST_005", _C, _HIGH, "compute.tf", "Instances run through the night for nobody", "Schedule them"),
    Known("COST_006", _C, _LOW, "logs.tf", "Logs are kept for ever", "Set retention_in_days"),
    Known("REL_001", _R, _HIGH, "compute.tf", "One instance does it all", "Put it into an autoscaling group of two"),
    Known("REL_002", _R, _MEDIUM, "logs.tf", "No alarm on errors", "Add an alarm with somebody who hears it"),
)  # fmt: skip

SYSTEMS = (
    "network-core", "billing-api", "billing-db", "identity", "search", "ingest", "reports", "warehouse", "payments",
    "notifications", "media", "catalogue", "checkout", "fleet", "telemetry", "partner-gateway", "backoffice", "edge",
    "batch", "observability",
)  # fmt: skip

STACKS = tuple(f"{place}-{system}" for system in SYSTEMS for place in ("prod", "stage"))

CODE = {
    "CKV_AWS_20": Lines('aws_s3_bucket_acl', 'bucket = aws_s3_bucket.assets.id', 'acl = "public-read"', 'acl = "private"'),
    "CKV_AWS_53": Lines('aws_s3_bucket_public_access_block', 'bucket = aws_s3_bucket.assets.id', 'block_public_acls = false', 'block_public_acls = true'),
    "CKV_AWS_19": Lines('aws_s3_bucket_server_side_encryption_configuration', 'bucket = aws_s3_bucket.assets.id', '# no rule yet', 'rule { apply_server_side_encryption_by_default { sse_algorithm = "aws:kms" } }'),
    "CKV_AWS_18": Lines('aws_s3_bucket_logging', 'bucket = aws_s3_bucket.assets.id', 'count = 0', 'target_bucket = aws_s3_bucket.logs.id'),
    "CKV_AWS_21": Lines('aws_s3_bucket_versioning', 'bucket = aws_s3_bucket.assets.id', 'versioning_configuration { status = "Suspended" }', 'versioning_configuration { status = "Enabled" }'),
    "CKV_AWS_24": Lines('aws_security_group_rule', 'from_port = 22', 'cidr_blocks = ["0.0.0.0/0"]', 'cidr_blocks = [var.management_range]'),
    "CKV_AWS_25": Lines('aws_security_group_rule', 'from_port = 3389', 'cidr_blocks = ["0.0.0.0/0"]', 'cidr_blocks = [var.management_range]'),
    "CKV_AWS_260": Lines('aws_security_group_rule', 'from_port = 80', 'cidr_blocks = ["0.0.0.0/0"]', 'source_security_group_id = aws_security_group.balancer.id'),
    "CKV_AWS_23": Lines('aws_security_group_rule', 'from_port = 5432', 'description = ""', 'description = "Application to database"'),
    "CKV2_AWS_11": Lines('aws_flow_log', 'vpc_id = aws_vpc.main.id', 'count = 0', 'traffic_type = "ALL"'),
    "CKV_AWS_130": Lines('aws_subnet', 'vpc_id = aws_vpc.main.id', 'map_public_ip_on_launch = true', 'map_public_ip_on_launch = false'),
    "CKV_AWS_16": Lines('aws_db_instance', 'engine = "postgres"', 'storage_encrypted = false', 'storage_encrypted = true'),
    "CKV_AWS_17": Lines('aws_db_instance', 'engine = "postgres"', 'publicly_accessible = true', 'publicly_accessible = false'),
    "CKV_AWS_161": Lines('aws_db_instance', 'engine = "postgres"', 'iam_database_authentication_enabled = false', 'iam_database_authentication_enabled = true'),
    "CKV_AWS_157": Lines('aws_db_instance', 'engine = "postgres"', 'multi_az = false', 'multi_az = true'),
    "CKV_AWS_133": Lines('aws_db_instance', 'engine = "postgres"', 'backup_retention_period = 0', 'backup_retention_period = 14'),
    "CKV_AWS_293": Lines('aws_db_instance', 'engine = "postgres"', 'deletion_protection = false', 'deletion_protection = true'),
    "CKV_AWS_28": Lines('aws_dynamodb_table', 'hash_key = "PK"', 'point_in_time_recovery { enabled = false }', 'point_in_time_recovery { enabled = true }'),
    "CKV_AWS_119": Lines('aws_dynamodb_table', 'hash_key = "PK"', 'server_side_encryption { enabled = false }', 'server_side_encryption { enabled = true }'),
    "CKV_AWS_7": Lines('aws_kms_key', 'description = "Data of ${local.stack}"', 'enable_key_rotation = false', 'enable_key_rotation = true'),
    "CKV_AWS_33": Lines('aws_kms_key_policy', 'key_id = aws_kms_key.data.id', 'policy = data.aws_iam_policy_document.anybody.json', 'policy = data.aws_iam_policy_document.owners.json'),
    "CKV_AWS_40": Lines('aws_iam_policy_attachment', 'name = "deploy"', 'users = [aws_iam_user.deploy.name]', 'roles = [aws_iam_role.deploy.name]'),
    "CKV_AWS_62": Lines('aws_iam_policy', 'name = "operate"', 'policy = jsonencode({ Effect = "Allow", Action = "*", Resource = "*" })', 'policy = data.aws_iam_policy_document.operate.json'),
    "CKV_AWS_109": Lines('aws_iam_policy', 'name = "delegate"', 'policy = jsonencode({ Effect = "Allow", Action = "iam:*", Resource = "*" })', 'policy = data.aws_iam_policy_document.delegate.json'),
    "CKV_AWS_79": Lines('aws_launch_template', 'image_id = data.aws_ami.base.id', 'metadata_options { http_tokens = "optional" }', 'metadata_options { http_tokens = "required" }'),
    "CKV_AWS_8": Lines('aws_instance', 'ami = data.aws_ami.base.id', 'root_block_device { encrypted = false }', 'root_block_device { encrypted = true }'),
    "CKV_AWS_126": Lines('aws_instance', 'ami = data.aws_ami.base.id', 'monitoring = false', 'monitoring = true'),
    "CKV_AWS_46": Lines('aws_instance', 'ami = data.aws_ami.base.id', 'user_data = file("start-with-password.sh")', 'user_data = file("start.sh")'),
    "CKV_AWS_116": Lines('aws_lambda_function', 'runtime = "python3.13"', '# no dead_letter_config', 'dead_letter_config { target_arn = aws_sqs_queue.failed.arn }'),
    "CKV_AWS_115": Lines('aws_lambda_function', 'runtime = "python3.13"', 'reserved_concurrent_executions = -1', 'reserved_concurrent_executions = 20'),
    "CKV_AWS_45": Lines('aws_lambda_function', 'runtime = "python3.13"', 'environment { variables = { API_KEY = var.api_key } }', 'environment { variables = { API_KEY_NAME = "partner/api-key" } }'),
    "CKV_AWS_91": Lines('aws_lb', 'load_balancer_type = "application"', 'access_logs { enabled = false }', 'access_logs { enabled = true }'),
    "CKV_AWS_103": Lines('aws_lb_listener', 'port = 443', 'ssl_policy = "ELBSecurityPolicy-2016-08"', 'ssl_policy = "ELBSecurityPolicy-TLS13-1-2-2021-06"'),
    "CKV_AWS_150": Lines('aws_lb', 'load_balancer_type = "application"', 'enable_deletion_protection = false', 'enable_deletion_protection = true'),
    "COST_001": Lines('aws_instance', 'ami = data.aws_ami.base.id', 'instance_type = "m7g.4xlarge"', 'instance_type = "m7g.xlarge"'),
    "COST_002": Lines('aws_s3_bucket_lifecycle_configuration', 'bucket = aws_s3_bucket.assets.id', '# no rule yet', 'rule { transition { days = 90, storage_class = "GLACIER" } }'),
    "COST_003": Lines('aws_db_instance', 'replicate_source_db = aws_db_instance.main.id', 'count = 1', 'count = 0'),
    "COST_004": Lines('aws_nat_gateway', 'subnet_id = aws_subnet.public[count.index].id', 'count = 3', 'count = 1'),
    "COST_005": Lines('aws_autoscaling_schedule', 'scheduled_action_name = "night"', 'desired_capacity = 6', 'desired_capacity = 0'),
    "COST_006": Lines('aws_cloudwatch_log_group', 'name = "/${local.stack}/service"', 'retention_in_days = 0', 'retention_in_days = 90'),
    "REL_001": Lines('aws_autoscaling_group', 'max_size = 4', 'min_size = 1', 'min_size = 2'),
    "REL_002": Lines('aws_cloudwatch_metric_alarm', 'metric_name = "Errors"', 'alarm_actions = []', 'alarm_actions = [aws_sns_topic.on_call.arn]'),
}  # fmt: skip

_AT = 2  # the line of its resource that an issue is in, counted from the first


def code_of(stack: str, issues: Sequence[Known], standing: Container[Known]) -> str:
    """Return Terraform code, file after file, with a resource for each issue: it is in there, or it is fixed.

    Each resource has as many lines either way, so what is found in one keeps its line when another is fixed.
    """
    told = [f'# ==> main.tf <==\nlocals {{\n  stack = "{stack}"\n}}\n']
    for path, some in _by_file(issues).items():
        told.append(f"# ==> {path} <==\n" + "\n".join(_resource(each, each in standing) for each in some))
    return "\n".join(told)


def lines_of(issues: Sequence[Known]) -> dict[Known, int]:
    """Return in which line of its file each issue is found."""
    found: dict[Known, int] = {}
    for some in _by_file(issues).values():
        line = 1
        for each in some:
            found[each] = line + _AT
            line += _resource(each, wrong=True).count("\n") + 1
    return found


def fix_of(issue: Known) -> tuple[str, str]:
    """Return the line of an issue, and what a fix makes of it."""
    told = CODE[issue.rule_id]
    return told.wrong, told.right


def _by_file(issues: Sequence[Known]) -> dict[str, list[Known]]:
    found: dict[str, list[Known]] = {}
    for each in sorted(issues, key=lambda issue: (issue.file_path, issue.rule_id)):
        found.setdefault(each.file_path, []).append(each)
    return found


def _resource(issue: Known, wrong: bool) -> str:
    told = CODE[issue.rule_id]
    name = issue.rule_id.lower()
    return f'resource "{told.resource}" "{name}" {{\n  {told.about}\n  {told.wrong if wrong else told.right}\n}}\n'
