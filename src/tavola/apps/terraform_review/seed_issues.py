"""The issues, code and stacks of the demo data: what Terraform reviews typically find."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from tavola.apps.terraform_review.domain import Category, FindingSeverity

_S, _C, _R = Category.SECURITY, Category.COST, Category.RELIABILITY
_HIGH, _MEDIUM, _LOW = FindingSeverity.HIGH, FindingSeverity.MEDIUM, FindingSeverity.LOW


@dataclass(frozen=True, slots=True)
class KnownIssue:
    """An issue that reviews often find."""

    rule_id: str
    category: Category
    severity: FindingSeverity
    file_path: str
    title: str
    recommendation: str


@dataclass(frozen=True, slots=True)
class IssueCode:
    """The resource that an issue is found in: its faulty line, and that line after the fix."""

    resource: str
    about: str
    wrong: str
    right: str


ISSUES = (
    KnownIssue("CKV_AWS_20", _S, _HIGH, "storage.tf", "Bucket is publicly readable", "Set the ACL to private and block public access"),
    KnownIssue("CKV_AWS_53", _S, _HIGH, "storage.tf", "Public ACLs are not blocked", "Add a public access block with block_public_acls"),
    KnownIssue("CKV_AWS_19", _S, _MEDIUM, "storage.tf", "Bucket is not encrypted by default", "Configure server-side encryption"),
    KnownIssue("CKV_AWS_18", _S, _LOW, "storage.tf", "Bucket access logging is disabled", "Name a target bucket for access logs"),
    KnownIssue("CKV_AWS_21", _R, _MEDIUM, "storage.tf", "Bucket versioning is disabled", "Enable versioning"),
    KnownIssue("CKV_AWS_24", _S, _HIGH, "network.tf", "SSH is open to the internet", "Allow port 22 from the management range only"),
    KnownIssue("CKV_AWS_25", _S, _HIGH, "network.tf", "RDP is open to the internet", "Allow port 3389 from the management range only"),
    KnownIssue("CKV_AWS_260", _S, _HIGH, "network.tf", "Port 80 is open to the internet", "Allow access from the load balancer only"),
    KnownIssue("CKV_AWS_23", _S, _LOW, "network.tf", "Security group rule has no description", "Describe the purpose of the rule"),
    KnownIssue("CKV2_AWS_11", _S, _MEDIUM, "network.tf", "Network has no flow log", "Add a flow log to the VPC"),
    KnownIssue("CKV_AWS_130", _S, _MEDIUM, "network.tf", "Subnet gives out public addresses", "Set map_public_ip_on_launch to false"),
    KnownIssue("CKV_AWS_16", _S, _HIGH, "database.tf", "Database storage is not encrypted", "Set storage_encrypted; it takes a new instance"),
    KnownIssue("CKV_AWS_17", _S, _HIGH, "database.tf", "Database can be reached from the internet", "Set publicly_accessible to false"),
    KnownIssue("CKV_AWS_161", _S, _MEDIUM, "database.tf", "Database allows password authentication only", "Enable IAM authentication"),
    KnownIssue("CKV_AWS_157", _R, _HIGH, "database.tf", "Database runs in a single zone", "Set multi_az"),
    KnownIssue("CKV_AWS_133", _R, _HIGH, "database.tf", "Database has no backup", "Keep backups for at least a week"),
    KnownIssue("CKV_AWS_293", _R, _MEDIUM, "database.tf", "Database can be deleted by mistake", "Set deletion_protection"),
    KnownIssue("CKV_AWS_28", _R, _MEDIUM, "tables.tf", "Table has no point-in-time recovery", "Enable point_in_time_recovery"),
    KnownIssue("CKV_AWS_119", _S, _LOW, "tables.tf", "Table is not encrypted with a customer-managed key", "Name a KMS key in server_side_encryption"),
    KnownIssue("CKV_AWS_7", _S, _MEDIUM, "keys.tf", "Key is never rotated", "Set enable_key_rotation"),
    KnownIssue("CKV_AWS_33", _S, _HIGH, "keys.tf", "Key policy allows any principal", "Restrict the key policy to named principals"),
    KnownIssue("CKV_AWS_40", _S, _LOW, "iam.tf", "Policy is attached to a user", "Attach it to a group or a role"),
    KnownIssue("CKV_AWS_62", _S, _HIGH, "iam.tf", "Policy allows everything", "List the actions and resources that are used"),
    KnownIssue("CKV_AWS_109", _S, _HIGH, "iam.tf", "Policy allows unrestricted permission changes", "Restrict the resources of iam actions"),
    KnownIssue("CKV_AWS_79", _S, _HIGH, "compute.tf", "Instance answers metadata requests of version 1", "Require tokens in metadata_options"),
    KnownIssue("CKV_AWS_8", _S, _MEDIUM, "compute.tf", "Volume is not encrypted", "Set encrypted on the block devices"),
    KnownIssue("CKV_AWS_126", _R, _LOW, "compute.tf", "Instance has no detailed monitoring", "Set monitoring to true"),
    KnownIssue("CKV_AWS_46", _S, _HIGH, "compute.tf", "User data contains a secret", "Read it from the secrets store at start"),
    KnownIssue("CKV_AWS_116", _R, _MEDIUM, "functions.tf", "Function has no dead letter queue", "Add a queue for events that fail"),
    KnownIssue("CKV_AWS_115", _R, _LOW, "functions.tf", "Function has no concurrency limit", "Reserve concurrency"),
    KnownIssue("CKV_AWS_45", _S, _HIGH, "functions.tf", "Function environment contains a key", "Take the key from the secrets store"),
    KnownIssue("CKV_AWS_91", _S, _LOW, "balancer.tf", "Load balancer access logging is disabled", "Enable access_logs"),
    KnownIssue("CKV_AWS_103", _S, _MEDIUM, "balancer.tf", "Listener allows outdated TLS", "Use a TLS 1.2 or later policy"),
    KnownIssue("CKV_AWS_150", _R, _LOW, "balancer.tf", "Load balancer can be deleted by mistake", "Set enable_deletion_protection"),
    KnownIssue("COST_001", _C, _MEDIUM, "compute.tf", "Instance is oversized", "Use a smaller instance type"),
    KnownIssue("COST_002", _C, _LOW, "storage.tf", "Old objects stay in the most expensive storage class", "Add a lifecycle rule"),
    KnownIssue("COST_003", _C, _MEDIUM, "database.tf", "Replica serves no reads", "Remove it, or send reads to it"),
    KnownIssue("COST_004", _C, _LOW, "network.tf", "A NAT gateway in each zone of a test stack", "One is enough outside production"),
    KnownIssue("COST_005", _C, _HIGH, "compute.tf", "Instances run unused at night", "Schedule scaling"),
    KnownIssue("COST_006", _C, _LOW, "logs.tf", "Logs are retained forever", "Set retention_in_days"),
    KnownIssue("REL_001", _R, _HIGH, "compute.tf", "Service runs on a single instance", "Use an autoscaling group with at least two instances"),
    KnownIssue("REL_002", _R, _MEDIUM, "logs.tf", "No alarm on errors", "Add an alarm with a notification"),
)  # fmt: skip

SYSTEMS = (
    "network-core", "billing-api", "billing-db", "identity", "search", "ingest", "reports", "warehouse", "payments",
    "notifications", "media", "catalogue", "checkout", "fleet", "telemetry", "partner-gateway", "backoffice", "edge",
    "batch", "observability",
)  # fmt: skip

STACKS = tuple(f"{environment}-{system}" for system in SYSTEMS for environment in ("prod", "stage"))

CODE = {
    "CKV_AWS_20": IssueCode('aws_s3_bucket_acl', 'bucket = aws_s3_bucket.assets.id', 'acl = "public-read"', 'acl = "private"'),
    "CKV_AWS_53": IssueCode('aws_s3_bucket_public_access_block', 'bucket = aws_s3_bucket.assets.id', 'block_public_acls = false', 'block_public_acls = true'),
    "CKV_AWS_19": IssueCode('aws_s3_bucket_server_side_encryption_configuration', 'bucket = aws_s3_bucket.assets.id', '# no rule yet', 'rule { apply_server_side_encryption_by_default { sse_algorithm = "aws:kms" } }'),
    "CKV_AWS_18": IssueCode('aws_s3_bucket_logging', 'bucket = aws_s3_bucket.assets.id', 'count = 0', 'target_bucket = aws_s3_bucket.logs.id'),
    "CKV_AWS_21": IssueCode('aws_s3_bucket_versioning', 'bucket = aws_s3_bucket.assets.id', 'versioning_configuration { status = "Suspended" }', 'versioning_configuration { status = "Enabled" }'),
    "CKV_AWS_24": IssueCode('aws_security_group_rule', 'from_port = 22', 'cidr_blocks = ["0.0.0.0/0"]', 'cidr_blocks = [var.management_range]'),
    "CKV_AWS_25": IssueCode('aws_security_group_rule', 'from_port = 3389', 'cidr_blocks = ["0.0.0.0/0"]', 'cidr_blocks = [var.management_range]'),
    "CKV_AWS_260": IssueCode('aws_security_group_rule', 'from_port = 80', 'cidr_blocks = ["0.0.0.0/0"]', 'source_security_group_id = aws_security_group.balancer.id'),
    "CKV_AWS_23": IssueCode('aws_security_group_rule', 'from_port = 5432', 'description = ""', 'description = "Application to database"'),
    "CKV2_AWS_11": IssueCode('aws_flow_log', 'vpc_id = aws_vpc.main.id', 'count = 0', 'traffic_type = "ALL"'),
    "CKV_AWS_130": IssueCode('aws_subnet', 'vpc_id = aws_vpc.main.id', 'map_public_ip_on_launch = true', 'map_public_ip_on_launch = false'),
    "CKV_AWS_16": IssueCode('aws_db_instance', 'engine = "postgres"', 'storage_encrypted = false', 'storage_encrypted = true'),
    "CKV_AWS_17": IssueCode('aws_db_instance', 'engine = "postgres"', 'publicly_accessible = true', 'publicly_accessible = false'),
    "CKV_AWS_161": IssueCode('aws_db_instance', 'engine = "postgres"', 'iam_database_authentication_enabled = false', 'iam_database_authentication_enabled = true'),
    "CKV_AWS_157": IssueCode('aws_db_instance', 'engine = "postgres"', 'multi_az = false', 'multi_az = true'),
    "CKV_AWS_133": IssueCode('aws_db_instance', 'engine = "postgres"', 'backup_retention_period = 0', 'backup_retention_period = 14'),
    "CKV_AWS_293": IssueCode('aws_db_instance', 'engine = "postgres"', 'deletion_protection = false', 'deletion_protection = true'),
    "CKV_AWS_28": IssueCode('aws_dynamodb_table', 'hash_key = "PK"', 'point_in_time_recovery { enabled = false }', 'point_in_time_recovery { enabled = true }'),
    "CKV_AWS_119": IssueCode('aws_dynamodb_table', 'hash_key = "PK"', 'server_side_encryption { enabled = false }', 'server_side_encryption { enabled = true }'),
    "CKV_AWS_7": IssueCode('aws_kms_key', 'description = "Data of ${local.stack}"', 'enable_key_rotation = false', 'enable_key_rotation = true'),
    "CKV_AWS_33": IssueCode('aws_kms_key_policy', 'key_id = aws_kms_key.data.id', 'policy = data.aws_iam_policy_document.public.json', 'policy = data.aws_iam_policy_document.owners.json'),
    "CKV_AWS_40": IssueCode('aws_iam_policy_attachment', 'name = "deploy"', 'users = [aws_iam_user.deploy.name]', 'roles = [aws_iam_role.deploy.name]'),
    "CKV_AWS_62": IssueCode('aws_iam_policy', 'name = "operate"', 'policy = jsonencode({ Effect = "Allow", Action = "*", Resource = "*" })', 'policy = data.aws_iam_policy_document.operate.json'),
    "CKV_AWS_109": IssueCode('aws_iam_policy', 'name = "delegate"', 'policy = jsonencode({ Effect = "Allow", Action = "iam:*", Resource = "*" })', 'policy = data.aws_iam_policy_document.delegate.json'),
    "CKV_AWS_79": IssueCode('aws_launch_template', 'image_id = data.aws_ami.base.id', 'metadata_options { http_tokens = "optional" }', 'metadata_options { http_tokens = "required" }'),
    "CKV_AWS_8": IssueCode('aws_instance', 'ami = data.aws_ami.base.id', 'root_block_device { encrypted = false }', 'root_block_device { encrypted = true }'),
    "CKV_AWS_126": IssueCode('aws_instance', 'ami = data.aws_ami.base.id', 'monitoring = false', 'monitoring = true'),
    "CKV_AWS_46": IssueCode('aws_instance', 'ami = data.aws_ami.base.id', 'user_data = file("start-with-password.sh")', 'user_data = file("start.sh")'),
    "CKV_AWS_116": IssueCode('aws_lambda_function', 'runtime = "python3.13"', '# no dead_letter_config', 'dead_letter_config { target_arn = aws_sqs_queue.failed.arn }'),
    "CKV_AWS_115": IssueCode('aws_lambda_function', 'runtime = "python3.13"', 'reserved_concurrent_executions = -1', 'reserved_concurrent_executions = 20'),
    "CKV_AWS_45": IssueCode('aws_lambda_function', 'runtime = "python3.13"', 'environment { variables = { API_KEY = var.api_key } }', 'environment { variables = { API_KEY_NAME = "partner/api-key" } }'),
    "CKV_AWS_91": IssueCode('aws_lb', 'load_balancer_type = "application"', 'access_logs { enabled = false }', 'access_logs { enabled = true }'),
    "CKV_AWS_103": IssueCode('aws_lb_listener', 'port = 443', 'ssl_policy = "ELBSecurityPolicy-2016-08"', 'ssl_policy = "ELBSecurityPolicy-TLS13-1-2-2021-06"'),
    "CKV_AWS_150": IssueCode('aws_lb', 'load_balancer_type = "application"', 'enable_deletion_protection = false', 'enable_deletion_protection = true'),
    "COST_001": IssueCode('aws_instance', 'ami = data.aws_ami.base.id', 'instance_type = "m7g.4xlarge"', 'instance_type = "m7g.xlarge"'),
    "COST_002": IssueCode('aws_s3_bucket_lifecycle_configuration', 'bucket = aws_s3_bucket.assets.id', '# no rule yet', 'rule { transition { days = 90, storage_class = "GLACIER" } }'),
    "COST_003": IssueCode('aws_db_instance', 'replicate_source_db = aws_db_instance.main.id', 'count = 1', 'count = 0'),
    "COST_004": IssueCode('aws_nat_gateway', 'subnet_id = aws_subnet.public[count.index].id', 'count = 3', 'count = 1'),
    "COST_005": IssueCode('aws_autoscaling_schedule', 'scheduled_action_name = "night"', 'desired_capacity = 6', 'desired_capacity = 0'),
    "COST_006": IssueCode('aws_cloudwatch_log_group', 'name = "/${local.stack}/service"', 'retention_in_days = 0', 'retention_in_days = 90'),
    "REL_001": IssueCode('aws_autoscaling_group', 'max_size = 4', 'min_size = 1', 'min_size = 2'),
    "REL_002": IssueCode('aws_cloudwatch_metric_alarm', 'metric_name = "Errors"', 'alarm_actions = []', 'alarm_actions = [aws_sns_topic.on_call.arn]'),
}  # fmt: skip

_ISSUE_LINE = 2  # of its resource, counted from 0


def render_code(stack: str, issues: Sequence[KnownIssue], present: Container[KnownIssue]) -> str:
    """Return Terraform code with a resource for each issue, faulty if the issue is in `present`, otherwise fixed.

    Faulty and fixed resources have the same number of lines, so that an issue keeps its line when another is fixed.
    """
    files = [f'# ==> main.tf <==\nlocals {{\n  stack = "{stack}"\n}}\n']
    for path, file_issues in _by_file(issues).items():
        files.append(
            f"# ==> {path} <==\n" + "\n".join(_resource(issue, issue in present) for issue in file_issues)
        )
    return "\n".join(files)


def issue_lines(issues: Sequence[KnownIssue]) -> dict[KnownIssue, int]:
    """Return the line of each issue in its file."""
    lines: dict[KnownIssue, int] = {}
    for file_issues in _by_file(issues).values():
        line = 1
        for issue in file_issues:
            lines[issue] = line + _ISSUE_LINE
            line += _resource(issue, wrong=True).count("\n") + 1
    return lines


def issue_fix(issue: KnownIssue) -> tuple[str, str]:
    """Return the faulty line of an issue, and the fixed one."""
    code = CODE[issue.rule_id]
    return code.wrong, code.right


def _by_file(issues: Sequence[KnownIssue]) -> dict[str, list[KnownIssue]]:
    files: dict[str, list[KnownIssue]] = {}
    for issue in sorted(issues, key=lambda issue: (issue.file_path, issue.rule_id)):
        files.setdefault(issue.file_path, []).append(issue)
    return files


def _resource(issue: KnownIssue, wrong: bool) -> str:
    code = CODE[issue.rule_id]
    name = issue.rule_id.lower()
    return f'resource "{code.resource}" "{name}" {{\n  {code.about}\n  {code.wrong if wrong else code.right}\n}}\n'
