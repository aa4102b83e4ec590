# Written by tavola iac terraform for prod-tickets-unified prod-metrics, with key endpoint alarms policies function:prod-tickets-unified-numbers failures:prod-tickets-unified-numbers, sum b1f24e54e85b15ed.

terraform {
  required_version = ">= 1.5"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 6.29"
    }
  }
}

variable "prefix" {
  description = "What all names begin with, such as dev-, so that one account has the module several times."
  type        = string
  default     = ""

  validation {
    condition     = can(regex("^[A-Za-z0-9_-]{0,20}$", var.prefix))
    error_message = "A prefix is 20 letters, digits, _ and - at most."
  }
}

variable "code_bucket" {
  description = "The bucket that holds the code of the functions."
  type        = string
}

variable "prod_tickets_unified_numbers_code_key" {
  description = "The zip file of prod-tickets-unified-numbers in that bucket."
  type        = string
}

variable "prod_tickets_unified_numbers_policy_arns" {
  description = "Policies of what prod-tickets-unified-numbers does besides."
  type        = list(string)
  default     = []
}

variable "alarm_topic_arns" {
  description = "The SNS topics that alarms tell; without one they tell nobody."
  type        = list(string)
  default     = []
}

variable "vpc_id" {
  description = "The network from which the tables are used."
  type        = string
}

variable "route_table_ids" {
  description = "The route tables of the subnets that use them."
  type        = list(string)
}

data "aws_partition" "current" {}

data "aws_caller_identity" "current" {}

data "aws_region" "current" {}

data "aws_iam_policy_document" "table_key" {
  statement {
    sid       = "Keepers"
    actions   = ["kms:*"]
    resources = ["*"]

    principals {
      type        = "AWS"
      identifiers = ["arn:${data.aws_partition.current.partition}:iam::${data.aws_caller_identity.current.account_id}:root"]
    }
  }

  statement {
    sid = "ThroughDynamoDB"
    actions = [
      "kms:Encrypt",
      "kms:Decrypt",
      "kms:ReEncrypt*",
      "kms:GenerateDataKey*",
      "kms:CreateGrant",
      "kms:DescribeKey",
    ]
    resources = ["*"]

    principals {
      type        = "AWS"
      identifiers = ["*"]
    }

    condition {
      test     = "StringEquals"
      variable = "kms:CallerAccount"
      values   = [data.aws_caller_identity.current.account_id]
    }

    condition {
      test     = "StringEquals"
      variable = "kms:ViaService"
      values   = ["dynamodb.${data.aws_region.current.region}.${data.aws_partition.current.dns_suffix}"]
    }
  }
}

resource "aws_kms_key" "tables" {
  description         = "Encrypts the tables."
  enable_key_rotation = true
  policy              = data.aws_iam_policy_document.table_key.json
  tags = {
    Environment = "production"
    Application = "ai-technical-support"
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_kms_alias" "tables" {
  name          = "alias/${var.prefix}prod-tickets-unified-tables"
  target_key_id = aws_kms_key.tables.key_id
}

resource "aws_dynamodb_table" "prod_tickets_unified" {
  name                        = "${var.prefix}prod-tickets-unified"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "PK"
  range_key                   = "SK"
  table_class                 = "STANDARD"
  deletion_protection_enabled = true
  stream_enabled              = true
  stream_view_type            = "NEW_AND_OLD_IMAGES"

  attribute {
    name = "PK"
    type = "S"
  }

  attribute {
    name = "SK"
    type = "S"
  }

  attribute {
    name = "GSI1PK"
    type = "S"
  }

  attribute {
    name = "GSI1SK"
    type = "S"
  }

  attribute {
    name = "GSI2PK"
    type = "S"
  }

  attribute {
    name = "GSI2SK"
    type = "S"
  }

  attribute {
    name = "GSI3PK"
    type = "S"
  }

  attribute {
    name = "GSI3SK"
    type = "S"
  }

  attribute {
    name = "GSI4SK"
    type = "S"
  }

  attribute {
    name = "GSI5PK"
    type = "S"
  }

  attribute {
    name = "GSI5SK"
    type = "S"
  }

  attribute {
    name = "GSI6PK"
    type = "S"
  }

  attribute {
    name = "GSI6SK"
    type = "S"
  }

  global_secondary_index {
    name            = "GSI1-customer-index"
    projection_type = "INCLUDE"
    non_key_attributes = [
      "entity_type",
      "ticket_id",
      "customer_id",
      "status",
      "priority",
      "subject",
      "created_at",
      "updated_at",
      "ttl",
    ]

    key_schema {
      attribute_name = "GSI1PK"
      key_type       = "HASH"
    }

    key_schema {
      attribute_name = "GSI1SK"
      key_type       = "RANGE"
    }
  }

  global_secondary_index {
    name            = "GSI2-status-index"
    projection_type = "INCLUDE"
    non_key_attributes = [
      "entity_type",
      "ticket_id",
      "customer_id",
      "status",
      "priority",
      "subject",
      "created_at",
      "updated_at",
      "ttl",
    ]

    key_schema {
      attribute_name = "GSI2PK"
      key_type       = "HASH"
    }

    key_schema {
      attribute_name = "GSI2SK"
      key_type       = "RANGE"
    }
  }

  global_secondary_index {
    name            = "GSI3-operator-index"
    projection_type = "INCLUDE"
    non_key_attributes = [
      "entity_type",
      "ticket_id",
      "customer_id",
      "status",
      "priority",
      "subject",
      "created_at",
      "updated_at",
      "ttl",
      "assigned_to",
      "escalated_at",
      "escalation_reason",
      "feedback_id",
      "operator_id",
      "submitted_at",
      "rating",
      "was_helpful",
    ]

    key_schema {
      attribute_name = "GSI3PK"
      key_type       = "HASH"
    }

    key_schema {
      attribute_name = "GSI3SK"
      key_type       = "RANGE"
    }
  }

  global_secondary_index {
    name            = "GSI4-customer-status-index"
    projection_type = "INCLUDE"
    non_key_attributes = [
      "entity_type",
      "ticket_id",
      "customer_id",
      "status",
      "priority",
      "subject",
      "created_at",
      "updated_at",
      "ttl",
    ]

    key_schema {
      attribute_name = "GSI1PK"
      key_type       = "HASH"
    }

    key_schema {
      attribute_name = "GSI4SK"
      key_type       = "RANGE"
    }
  }

  global_secondary_index {
    name            = "GSI5-recent-index"
    projection_type = "INCLUDE"
    non_key_attributes = [
      "entity_type",
      "ticket_id",
      "customer_id",
      "status",
      "priority",
      "subject",
      "created_at",
      "updated_at",
      "ttl",
    ]

    key_schema {
      attribute_name = "GSI5PK"
      key_type       = "HASH"
    }

    key_schema {
      attribute_name = "GSI5SK"
      key_type       = "RANGE"
    }
  }

  global_secondary_index {
    name            = "escalated-tickets-index"
    projection_type = "INCLUDE"
    non_key_attributes = [
      "entity_type",
      "ticket_id",
      "customer_id",
      "status",
      "priority",
      "subject",
      "created_at",
      "updated_at",
      "ttl",
      "assigned_to",
      "escalated_at",
      "escalation_reason",
    ]

    key_schema {
      attribute_name = "GSI6PK"
      key_type       = "HASH"
    }

    key_schema {
      attribute_name = "GSI6SK"
      key_type       = "RANGE"
    }
  }

  ttl {
    attribute_name = "ttl"
    enabled        = true
  }

  point_in_time_recovery {
    enabled                 = true
    recovery_period_in_days = 35
  }

  server_side_encryption {
    enabled     = true
    kms_key_arn = aws_kms_key.tables.arn
  }

  tags = {
    Environment = "production"
    Application = "ai-technical-support"
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_dynamodb_table" "prod_metrics" {
  name                        = "${var.prefix}prod-metrics"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "PK"
  range_key                   = "SK"
  table_class                 = "STANDARD"
  deletion_protection_enabled = true

  attribute {
    name = "PK"
    type = "S"
  }

  attribute {
    name = "SK"
    type = "S"
  }

  ttl {
    attribute_name = "ttl"
    enabled        = true
  }

  point_in_time_recovery {
    enabled                 = true
    recovery_period_in_days = 35
  }

  server_side_encryption {
    enabled     = true
    kms_key_arn = aws_kms_key.tables.arn
  }

  tags = {
    Environment = "production"
    Application = "ai-technical-support"
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_sqs_queue" "prod_tickets_unified_numbers_failures" {
  name_prefix               = "${var.prefix}prod-tickets-unified-num-failures-"
  message_retention_seconds = 1209600
  sqs_managed_sse_enabled   = true
  tags = {
    Environment = "production"
    Application = "ai-technical-support"
  }
}

resource "aws_cloudwatch_log_group" "prod_tickets_unified_numbers" {
  name              = "/aws/lambda/${var.prefix}prod-tickets-unified-numbers"
  retention_in_days = 30
  tags = {
    Environment = "production"
    Application = "ai-technical-support"
  }
}

data "aws_iam_policy_document" "prod_tickets_unified_numbers_trust" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["lambda.amazonaws.com"]
    }
  }
}

data "aws_iam_policy_document" "prod_tickets_unified_numbers" {
  statement {
    sid = "TicketsStream"
    actions = [
      "dynamodb:DescribeStream",
      "dynamodb:GetRecords",
      "dynamodb:GetShardIterator",
      "dynamodb:ListStreams",
    ]
    resources = [aws_dynamodb_table.prod_tickets_unified.stream_arn]
  }

  statement {
    sid       = "TicketsDescribe"
    actions   = ["dynamodb:DescribeTable"]
    resources = [aws_dynamodb_table.prod_tickets_unified.arn]
  }

  statement {
    sid = "MetricsItems"
    actions = [
      "dynamodb:BatchGetItem",
      "dynamodb:ConditionCheckItem",
      "dynamodb:GetItem",
      "dynamodb:PutItem",
      "dynamodb:Query",
    ]
    resources = [aws_dynamodb_table.prod_metrics.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["MARK#*", "METRIC#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "MetricsWrite"
    actions   = ["dynamodb:UpdateItem"]
    resources = [aws_dynamodb_table.prod_metrics.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["METRIC#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }

    condition {
      test     = "ForAllValues:StringEquals"
      variable = "dynamodb:Attributes"
      values   = ["PK", "SK", "name", "part", "count", "total", "entity_type", "ttl"]
    }
  }

  statement {
    sid       = "MetricsWrite2"
    actions   = ["dynamodb:UpdateItem"]
    resources = [aws_dynamodb_table.prod_metrics.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["MARK#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }

    condition {
      test     = "ForAllValues:StringEquals"
      variable = "dynamodb:Attributes"
      values   = ["PK", "SK", "projector", "source", "kind", "place", "shares", "ttl", "entity_type"]
    }
  }

  statement {
    sid       = "OnlyOverTls"
    effect    = "Deny"
    actions   = ["dynamodb:*"]
    resources = ["*"]

    condition {
      test     = "Bool"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }
  }

  statement {
    sid       = "Logs"
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    resources = ["${aws_cloudwatch_log_group.prod_tickets_unified_numbers.arn}:*"]
  }

  statement {
    sid       = "Failures"
    actions   = ["sqs:SendMessage"]
    resources = [aws_sqs_queue.prod_tickets_unified_numbers_failures.arn]
  }
}

resource "aws_iam_role" "prod_tickets_unified_numbers" {
  name               = "${var.prefix}prod-tickets-unified-numbers"
  description        = "What prod-tickets-unified-numbers may do."
  assume_role_policy = data.aws_iam_policy_document.prod_tickets_unified_numbers_trust.json
  tags = {
    Environment = "production"
    Application = "ai-technical-support"
  }
}

resource "aws_iam_role_policy" "prod_tickets_unified_numbers" {
  name   = "consumer"
  role   = aws_iam_role.prod_tickets_unified_numbers.id
  policy = data.aws_iam_policy_document.prod_tickets_unified_numbers.json
}

resource "aws_iam_role_policy_attachment" "prod_tickets_unified_numbers" {
  for_each = toset(var.prod_tickets_unified_numbers_policy_arns)

  role       = aws_iam_role.prod_tickets_unified_numbers.name
  policy_arn = each.value
}

resource "aws_lambda_function" "prod_tickets_unified_numbers" {
  function_name = "${var.prefix}prod-tickets-unified-numbers"
  runtime       = "python3.13"
  handler       = "desk_numbers.handler"
  s3_bucket     = var.code_bucket
  s3_key        = var.prod_tickets_unified_numbers_code_key
  role          = aws_iam_role.prod_tickets_unified_numbers.arn
  timeout       = 60
  memory_size   = 256
  tags = {
    Environment = "production"
    Application = "ai-technical-support"
  }

  logging_config {
    log_format = "Text"
    log_group  = aws_cloudwatch_log_group.prod_tickets_unified_numbers.name
  }
}

resource "aws_lambda_event_source_mapping" "prod_tickets_unified_numbers" {
  event_source_arn                   = aws_dynamodb_table.prod_tickets_unified.stream_arn
  function_name                      = aws_lambda_function.prod_tickets_unified_numbers.arn
  starting_position                  = "TRIM_HORIZON"
  batch_size                         = 100
  maximum_batching_window_in_seconds = 5
  parallelization_factor             = 1
  bisect_batch_on_function_error     = true
  maximum_retry_attempts             = 3
  maximum_record_age_in_seconds      = -1
  function_response_types            = ["ReportBatchItemFailures"]

  filter_criteria {
    filter {
      pattern = jsonencode({
        dynamodb = {
          NewImage = {
            entity_type = {
              S = ["ticket", "feedback"]
            }
          }
        }
      })
    }

    filter {
      pattern = jsonencode({
        eventName = ["REMOVE"]
        dynamodb = {
          OldImage = {
            entity_type = {
              S = ["ticket", "feedback"]
            }
          }
        }
      })
    }
  }

  destination_config {
    on_failure {
      destination_arn = aws_sqs_queue.prod_tickets_unified_numbers_failures.arn
    }
  }

  depends_on = [aws_iam_role_policy.prod_tickets_unified_numbers]
  tags = {
    Environment = "production"
    Application = "ai-technical-support"
  }
}

data "aws_iam_policy_document" "reader" {
  statement {
    sid       = "TicketsRead"
    actions   = ["dynamodb:GetItem"]
    resources = [aws_dynamodb_table.prod_tickets_unified.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["CACHE#*", "EMBEDDING#*", "IDEMPOTENCY#*#*", "SESSION#*", "TICKET#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid     = "TicketsIndexesQuery"
    actions = ["dynamodb:Query"]
    resources = [
      "${aws_dynamodb_table.prod_tickets_unified.arn}/index/GSI1-customer-index",
      "${aws_dynamodb_table.prod_tickets_unified.arn}/index/GSI4-customer-status-index",
    ]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["CUSTOMER#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "TicketsStatusIndexQuery"
    actions   = ["dynamodb:Query"]
    resources = ["${aws_dynamodb_table.prod_tickets_unified.arn}/index/GSI2-status-index"]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["STATUS#*#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "TicketsRecentIndexQuery"
    actions   = ["dynamodb:Query"]
    resources = ["${aws_dynamodb_table.prod_tickets_unified.arn}/index/GSI5-recent-index"]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["TICKETS#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "TicketsEscalatedIndexQuery"
    actions   = ["dynamodb:Query"]
    resources = ["${aws_dynamodb_table.prod_tickets_unified.arn}/index/escalated-tickets-index"]

    condition {
      test     = "ForAllValues:StringEquals"
      variable = "dynamodb:LeadingKeys"
      values   = ["ESCALATED"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "TicketsOperatorIndexQuery"
    actions   = ["dynamodb:Query"]
    resources = ["${aws_dynamodb_table.prod_tickets_unified.arn}/index/GSI3-operator-index"]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["ENGINEER#*", "OPERATOR#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "TicketsQuery"
    actions   = ["dynamodb:Query"]
    resources = [aws_dynamodb_table.prod_tickets_unified.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["TICKET#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "MetricsQuery"
    actions   = ["dynamodb:Query"]
    resources = [aws_dynamodb_table.prod_metrics.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["METRIC#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "OnlyOverTls"
    effect    = "Deny"
    actions   = ["dynamodb:*"]
    resources = ["*"]

    condition {
      test     = "Bool"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }
  }
}

resource "aws_iam_policy" "reader" {
  name        = "${var.prefix}prod-tickets-unified-reader"
  description = "Reads all that the design's access patterns read, and writes nothing."
  policy      = data.aws_iam_policy_document.reader.json
  tags = {
    Environment = "production"
    Application = "ai-technical-support"
  }
}

data "aws_iam_policy_document" "writer" {
  statement {
    sid       = "TicketsWrite"
    actions   = ["dynamodb:ConditionCheckItem", "dynamodb:PutItem"]
    resources = [aws_dynamodb_table.prod_tickets_unified.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["EMBEDDING#*", "IDEMPOTENCY#*#*", "TICKET#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }

    condition {
      test     = "StringEquals"
      variable = "dynamodb:EnclosingOperation"
      values   = ["TransactWriteItems"]
    }
  }

  statement {
    sid       = "TicketsWrite2"
    actions   = ["dynamodb:UpdateItem"]
    resources = [aws_dynamodb_table.prod_tickets_unified.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["TICKET#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }

    condition {
      test     = "ForAllValues:StringEquals"
      variable = "dynamodb:Attributes"
      values = [
        "PK",
        "SK",
        "ticket_id",
        "customer_id",
        "status",
        "priority",
        "subject",
        "symptom_text",
        "full_text",
        "product",
        "created_at",
        "updated_at",
        "completed_at",
        "assigned_to",
        "escalated_at",
        "escalation_reason",
        "files",
        "version",
        "ttl",
        "GSI1PK",
        "GSI1SK",
        "GSI4SK",
        "GSI2PK",
        "GSI2SK",
        "GSI5PK",
        "GSI5SK",
        "GSI6PK",
        "GSI6SK",
        "GSI3PK",
        "GSI3SK",
        "entity_type",
      ]
    }

    condition {
      test     = "StringEquals"
      variable = "dynamodb:EnclosingOperation"
      values   = ["TransactWriteItems"]
    }
  }

  statement {
    sid       = "TicketsRead"
    actions   = ["dynamodb:BatchGetItem", "dynamodb:GetItem"]
    resources = [aws_dynamodb_table.prod_tickets_unified.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["TICKET#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "TicketsWrite3"
    actions   = ["dynamodb:PutItem"]
    resources = [aws_dynamodb_table.prod_tickets_unified.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["CACHE#*", "SESSION#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "MetricsWrite"
    actions   = ["dynamodb:UpdateItem"]
    resources = [aws_dynamodb_table.prod_metrics.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["METRIC#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }

    condition {
      test     = "ForAllValues:StringEquals"
      variable = "dynamodb:Attributes"
      values   = ["PK", "SK", "name", "part", "count", "total", "entity_type", "ttl"]
    }

    condition {
      test     = "StringEquals"
      variable = "dynamodb:EnclosingOperation"
      values   = ["TransactWriteItems"]
    }
  }

  statement {
    sid       = "MetricsRead"
    actions   = ["dynamodb:ConditionCheckItem"]
    resources = [aws_dynamodb_table.prod_metrics.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["MARK#*", "METRIC#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }

    condition {
      test     = "StringEquals"
      variable = "dynamodb:EnclosingOperation"
      values   = ["TransactWriteItems"]
    }
  }

  statement {
    sid       = "MetricsWrite2"
    actions   = ["dynamodb:PutItem"]
    resources = [aws_dynamodb_table.prod_metrics.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["MARK#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }

    condition {
      test     = "StringEquals"
      variable = "dynamodb:EnclosingOperation"
      values   = ["TransactWriteItems"]
    }
  }

  statement {
    sid       = "OnlyOverTls"
    effect    = "Deny"
    actions   = ["dynamodb:*"]
    resources = ["*"]

    condition {
      test     = "Bool"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }
  }
}

resource "aws_iam_policy" "writer" {
  name        = "${var.prefix}prod-tickets-unified-writer"
  description = "Makes every write of the design, with the reads that these take."
  policy      = data.aws_iam_policy_document.writer.json
  tags = {
    Environment = "production"
    Application = "ai-technical-support"
  }
}

data "aws_iam_policy_document" "service" {
  statement {
    sid       = "TicketsRead"
    actions   = ["dynamodb:GetItem"]
    resources = [aws_dynamodb_table.prod_tickets_unified.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["CACHE#*", "EMBEDDING#*", "IDEMPOTENCY#*#*", "SESSION#*", "TICKET#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid     = "TicketsIndexesQuery"
    actions = ["dynamodb:Query"]
    resources = [
      "${aws_dynamodb_table.prod_tickets_unified.arn}/index/GSI1-customer-index",
      "${aws_dynamodb_table.prod_tickets_unified.arn}/index/GSI4-customer-status-index",
    ]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["CUSTOMER#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "TicketsStatusIndexQuery"
    actions   = ["dynamodb:Query"]
    resources = ["${aws_dynamodb_table.prod_tickets_unified.arn}/index/GSI2-status-index"]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["STATUS#*#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "TicketsRecentIndexQuery"
    actions   = ["dynamodb:Query"]
    resources = ["${aws_dynamodb_table.prod_tickets_unified.arn}/index/GSI5-recent-index"]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["TICKETS#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "TicketsEscalatedIndexQuery"
    actions   = ["dynamodb:Query"]
    resources = ["${aws_dynamodb_table.prod_tickets_unified.arn}/index/escalated-tickets-index"]

    condition {
      test     = "ForAllValues:StringEquals"
      variable = "dynamodb:LeadingKeys"
      values   = ["ESCALATED"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "TicketsOperatorIndexQuery"
    actions   = ["dynamodb:Query"]
    resources = ["${aws_dynamodb_table.prod_tickets_unified.arn}/index/GSI3-operator-index"]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["ENGINEER#*", "OPERATOR#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "TicketsItems"
    actions   = ["dynamodb:BatchGetItem", "dynamodb:Query"]
    resources = [aws_dynamodb_table.prod_tickets_unified.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["TICKET#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "TicketsWrite"
    actions   = ["dynamodb:ConditionCheckItem", "dynamodb:PutItem"]
    resources = [aws_dynamodb_table.prod_tickets_unified.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["EMBEDDING#*", "IDEMPOTENCY#*#*", "TICKET#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }

    condition {
      test     = "StringEquals"
      variable = "dynamodb:EnclosingOperation"
      values   = ["TransactWriteItems"]
    }
  }

  statement {
    sid       = "TicketsWrite2"
    actions   = ["dynamodb:UpdateItem"]
    resources = [aws_dynamodb_table.prod_tickets_unified.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["TICKET#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }

    condition {
      test     = "ForAllValues:StringEquals"
      variable = "dynamodb:Attributes"
      values = [
        "PK",
        "SK",
        "ticket_id",
        "customer_id",
        "status",
        "priority",
        "subject",
        "symptom_text",
        "full_text",
        "product",
        "created_at",
        "updated_at",
        "completed_at",
        "assigned_to",
        "escalated_at",
        "escalation_reason",
        "files",
        "version",
        "ttl",
        "GSI1PK",
        "GSI1SK",
        "GSI4SK",
        "GSI2PK",
        "GSI2SK",
        "GSI5PK",
        "GSI5SK",
        "GSI6PK",
        "GSI6SK",
        "GSI3PK",
        "GSI3SK",
        "entity_type",
      ]
    }

    condition {
      test     = "StringEquals"
      variable = "dynamodb:EnclosingOperation"
      values   = ["TransactWriteItems"]
    }
  }

  statement {
    sid       = "TicketsWrite3"
    actions   = ["dynamodb:PutItem"]
    resources = [aws_dynamodb_table.prod_tickets_unified.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["CACHE#*", "SESSION#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "MetricsQuery"
    actions   = ["dynamodb:Query"]
    resources = [aws_dynamodb_table.prod_metrics.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["METRIC#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "MetricsWrite"
    actions   = ["dynamodb:UpdateItem"]
    resources = [aws_dynamodb_table.prod_metrics.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["METRIC#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }

    condition {
      test     = "ForAllValues:StringEquals"
      variable = "dynamodb:Attributes"
      values   = ["PK", "SK", "name", "part", "count", "total", "entity_type", "ttl"]
    }

    condition {
      test     = "StringEquals"
      variable = "dynamodb:EnclosingOperation"
      values   = ["TransactWriteItems"]
    }
  }

  statement {
    sid       = "MetricsRead"
    actions   = ["dynamodb:ConditionCheckItem"]
    resources = [aws_dynamodb_table.prod_metrics.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["MARK#*", "METRIC#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }

    condition {
      test     = "StringEquals"
      variable = "dynamodb:EnclosingOperation"
      values   = ["TransactWriteItems"]
    }
  }

  statement {
    sid       = "MetricsWrite2"
    actions   = ["dynamodb:PutItem"]
    resources = [aws_dynamodb_table.prod_metrics.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["MARK#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }

    condition {
      test     = "StringEquals"
      variable = "dynamodb:EnclosingOperation"
      values   = ["TransactWriteItems"]
    }
  }

  statement {
    sid       = "OnlyOverTls"
    effect    = "Deny"
    actions   = ["dynamodb:*"]
    resources = ["*"]

    condition {
      test     = "Bool"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }
  }
}

resource "aws_iam_policy" "service" {
  name        = "${var.prefix}prod-tickets-unified-service"
  description = "Reads and writes all that the design's access patterns do."
  policy      = data.aws_iam_policy_document.service.json
  tags = {
    Environment = "production"
    Application = "ai-technical-support"
  }
}

data "aws_iam_policy_document" "tenant" {
  statement {
    sid     = "TicketsIndexesQuery"
    actions = ["dynamodb:Query"]
    resources = [
      "${aws_dynamodb_table.prod_tickets_unified.arn}/index/GSI1-customer-index",
      "${aws_dynamodb_table.prod_tickets_unified.arn}/index/GSI4-customer-status-index",
    ]

    condition {
      test     = "ForAllValues:StringEquals"
      variable = "dynamodb:LeadingKeys"
      values   = ["CUSTOMER#$${aws:PrincipalTag/customer_id}"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "OnlyOverTls"
    effect    = "Deny"
    actions   = ["dynamodb:*"]
    resources = ["*"]

    condition {
      test     = "Bool"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }
  }
}

resource "aws_iam_policy" "tenant" {
  name        = "${var.prefix}prod-tickets-unified-tenant"
  description = "Does what the own customer_id leads, which is a tag of whoever asks, with the text that stands in keys."
  policy      = data.aws_iam_policy_document.tenant.json
  tags = {
    Environment = "production"
    Application = "ai-technical-support"
  }
}

data "aws_iam_policy_document" "keeper" {
  statement {
    sid       = "Keep"
    actions   = ["dynamodb:CreateBackup", "dynamodb:DescribeContinuousBackups", "dynamodb:DescribeTable"]
    resources = [aws_dynamodb_table.prod_tickets_unified.arn, aws_dynamodb_table.prod_metrics.arn]
  }

  statement {
    sid     = "Look"
    actions = ["dynamodb:DescribeBackup"]
    resources = [
      "${aws_dynamodb_table.prod_tickets_unified.arn}/backup/*",
      "${aws_dynamodb_table.prod_metrics.arn}/backup/*",
    ]
  }

  statement {
    sid       = "List"
    actions   = ["dynamodb:ListBackups"]
    resources = ["*"]
  }

  statement {
    sid       = "OnlyOverTls"
    effect    = "Deny"
    actions   = ["dynamodb:*"]
    resources = ["*"]

    condition {
      test     = "Bool"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }
  }
}

resource "aws_iam_policy" "keeper" {
  name        = "${var.prefix}prod-tickets-unified-keeper"
  description = "Makes and looks at backups; it deletes and restores none."
  policy      = data.aws_iam_policy_document.keeper.json
  tags = {
    Environment = "production"
    Application = "ai-technical-support"
  }
}

resource "aws_cloudwatch_metric_alarm" "read_throttles" {
  for_each = {
    "prod-tickets-unified-read-throttles" = {
      TableName = aws_dynamodb_table.prod_tickets_unified.name
    }
    "prod-tickets-unified-GSI1-customer-index-read-throttles" = {
      TableName                = aws_dynamodb_table.prod_tickets_unified.name
      GlobalSecondaryIndexName = "GSI1-customer-index"
    }
    "prod-tickets-unified-GSI2-status-index-read-throttles" = {
      TableName                = aws_dynamodb_table.prod_tickets_unified.name
      GlobalSecondaryIndexName = "GSI2-status-index"
    }
    "prod-tickets-unified-GSI3-operator-index-read-throttles" = {
      TableName                = aws_dynamodb_table.prod_tickets_unified.name
      GlobalSecondaryIndexName = "GSI3-operator-index"
    }
    "prod-tickets-unified-GSI4-customer-status-index-read-throttles" = {
      TableName                = aws_dynamodb_table.prod_tickets_unified.name
      GlobalSecondaryIndexName = "GSI4-customer-status-index"
    }
    "prod-tickets-unified-GSI5-recent-index-read-throttles" = {
      TableName                = aws_dynamodb_table.prod_tickets_unified.name
      GlobalSecondaryIndexName = "GSI5-recent-index"
    }
    "prod-tickets-unified-escalated-tickets-index-read-throttles" = {
      TableName                = aws_dynamodb_table.prod_tickets_unified.name
      GlobalSecondaryIndexName = "escalated-tickets-index"
    }
    "prod-metrics-read-throttles" = {
      TableName = aws_dynamodb_table.prod_metrics.name
    }
  }

  alarm_name          = "${var.prefix}${each.key}"
  alarm_description   = "Reads are throttled."
  namespace           = "AWS/DynamoDB"
  metric_name         = "ReadThrottleEvents"
  dimensions          = each.value
  statistic           = "Sum"
  period              = 60
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  evaluation_periods  = 5
  datapoints_to_alarm = 3
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
  tags = {
    Environment = "production"
    Application = "ai-technical-support"
  }
}

resource "aws_cloudwatch_metric_alarm" "write_throttles" {
  for_each = {
    "prod-tickets-unified-write-throttles" = {
      TableName = aws_dynamodb_table.prod_tickets_unified.name
    }
    "prod-tickets-unified-GSI1-customer-index-write-throttles" = {
      TableName                = aws_dynamodb_table.prod_tickets_unified.name
      GlobalSecondaryIndexName = "GSI1-customer-index"
    }
    "prod-tickets-unified-GSI2-status-index-write-throttles" = {
      TableName                = aws_dynamodb_table.prod_tickets_unified.name
      GlobalSecondaryIndexName = "GSI2-status-index"
    }
    "prod-tickets-unified-GSI3-operator-index-write-throttles" = {
      TableName                = aws_dynamodb_table.prod_tickets_unified.name
      GlobalSecondaryIndexName = "GSI3-operator-index"
    }
    "prod-tickets-unified-GSI4-customer-status-index-write-throttles" = {
      TableName                = aws_dynamodb_table.prod_tickets_unified.name
      GlobalSecondaryIndexName = "GSI4-customer-status-index"
    }
    "prod-tickets-unified-GSI5-recent-index-write-throttles" = {
      TableName                = aws_dynamodb_table.prod_tickets_unified.name
      GlobalSecondaryIndexName = "GSI5-recent-index"
    }
    "prod-tickets-unified-escalated-tickets-index-write-throttles" = {
      TableName                = aws_dynamodb_table.prod_tickets_unified.name
      GlobalSecondaryIndexName = "escalated-tickets-index"
    }
    "prod-metrics-write-throttles" = {
      TableName = aws_dynamodb_table.prod_metrics.name
    }
  }

  alarm_name          = "${var.prefix}${each.key}"
  alarm_description   = "Writes are throttled."
  namespace           = "AWS/DynamoDB"
  metric_name         = "WriteThrottleEvents"
  dimensions          = each.value
  statistic           = "Sum"
  period              = 60
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  evaluation_periods  = 5
  datapoints_to_alarm = 3
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
  tags = {
    Environment = "production"
    Application = "ai-technical-support"
  }
}

resource "aws_cloudwatch_metric_alarm" "backfill_throttles" {
  for_each = {
    "prod-tickets-unified-GSI1-customer-index-backfill-throttles" = {
      TableName                = aws_dynamodb_table.prod_tickets_unified.name
      GlobalSecondaryIndexName = "GSI1-customer-index"
    }
    "prod-tickets-unified-GSI2-status-index-backfill-throttles" = {
      TableName                = aws_dynamodb_table.prod_tickets_unified.name
      GlobalSecondaryIndexName = "GSI2-status-index"
    }
    "prod-tickets-unified-GSI3-operator-index-backfill-throttles" = {
      TableName                = aws_dynamodb_table.prod_tickets_unified.name
      GlobalSecondaryIndexName = "GSI3-operator-index"
    }
    "prod-tickets-unified-GSI4-customer-status-index-backfill-throttles" = {
      TableName                = aws_dynamodb_table.prod_tickets_unified.name
      GlobalSecondaryIndexName = "GSI4-customer-status-index"
    }
    "prod-tickets-unified-GSI5-recent-index-backfill-throttles" = {
      TableName                = aws_dynamodb_table.prod_tickets_unified.name
      GlobalSecondaryIndexName = "GSI5-recent-index"
    }
    "prod-tickets-unified-escalated-tickets-index-backfill-throttles" = {
      TableName                = aws_dynamodb_table.prod_tickets_unified.name
      GlobalSecondaryIndexName = "escalated-tickets-index"
    }
  }

  alarm_name          = "${var.prefix}${each.key}"
  alarm_description   = "An index that is being built is throttled, and stays behind its table."
  namespace           = "AWS/DynamoDB"
  metric_name         = "OnlineIndexThrottleEvents"
  dimensions          = each.value
  statistic           = "Sum"
  period              = 60
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  evaluation_periods  = 5
  datapoints_to_alarm = 3
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
  tags = {
    Environment = "production"
    Application = "ai-technical-support"
  }
}

resource "aws_cloudwatch_metric_alarm" "system_errors" {
  for_each = {
    "prod-tickets-unified-system-errors" = {
      TableName = aws_dynamodb_table.prod_tickets_unified.name
    }
    "prod-metrics-system-errors" = {
      TableName = aws_dynamodb_table.prod_metrics.name
    }
  }

  alarm_name          = "${var.prefix}${each.key}"
  alarm_description   = "DynamoDB answers with errors of its own."
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  evaluation_periods  = 5
  datapoints_to_alarm = 3
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns

  metric_query {
    id          = "total"
    expression  = "SUM(METRICS())"
    label       = "SystemErrors"
    return_data = true
  }

  dynamic "metric_query" {
    for_each = [
      "GetItem",
      "BatchGetItem",
      "Query",
      "TransactGetItems",
      "PutItem",
      "UpdateItem",
      "DeleteItem",
      "BatchWriteItem",
      "TransactWriteItems",
    ]

    content {
      id = "m${metric_query.key}"

      metric {
        namespace   = "AWS/DynamoDB"
        metric_name = "SystemErrors"
        dimensions  = merge(each.value, { Operation = metric_query.value })
        period      = 60
        stat        = "Sum"
      }
    }
  }

  tags = {
    Environment = "production"
    Application = "ai-technical-support"
  }
}

resource "aws_cloudwatch_metric_alarm" "user_errors" {
  alarm_name          = "${var.prefix}prod-tickets-unified-user-errors"
  alarm_description   = "Requests are refused as wrong: of any table of the account in this region."
  namespace           = "AWS/DynamoDB"
  metric_name         = "UserErrors"
  statistic           = "Sum"
  period              = 300
  comparison_operator = "GreaterThanThreshold"
  threshold           = 10
  evaluation_periods  = 3
  datapoints_to_alarm = 2
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
  tags = {
    Environment = "production"
    Application = "ai-technical-support"
  }
}

resource "aws_cloudwatch_metric_alarm" "iterator_age" {
  for_each = {
    "prod-tickets-unified-numbers-iterator-age" = {
      FunctionName = aws_lambda_function.prod_tickets_unified_numbers.function_name
    }
  }

  alarm_name          = "${var.prefix}${each.key}"
  alarm_description   = "A stream's consumer is behind."
  namespace           = "AWS/Lambda"
  metric_name         = "IteratorAge"
  dimensions          = each.value
  statistic           = "Maximum"
  period              = 60
  comparison_operator = "GreaterThanThreshold"
  threshold           = 300000
  evaluation_periods  = 5
  datapoints_to_alarm = 3
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
  tags = {
    Environment = "production"
    Application = "ai-technical-support"
  }
}

resource "aws_cloudwatch_metric_alarm" "errors" {
  for_each = {
    "prod-tickets-unified-numbers-errors" = {
      FunctionName = aws_lambda_function.prod_tickets_unified_numbers.function_name
    }
  }

  alarm_name          = "${var.prefix}${each.key}"
  alarm_description   = "A stream's consumer fails."
  namespace           = "AWS/Lambda"
  metric_name         = "Errors"
  dimensions          = each.value
  statistic           = "Sum"
  period              = 60
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  evaluation_periods  = 5
  datapoints_to_alarm = 3
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
  tags = {
    Environment = "production"
    Application = "ai-technical-support"
  }
}

resource "aws_cloudwatch_metric_alarm" "failed_records" {
  for_each = {
    "prod-tickets-unified-numbers-failed-records" = {
      QueueName = aws_sqs_queue.prod_tickets_unified_numbers_failures.name
    }
  }

  alarm_name          = "${var.prefix}${each.key}"
  alarm_description   = "Records failed for good, and wait for somebody."
  namespace           = "AWS/SQS"
  metric_name         = "ApproximateNumberOfMessagesVisible"
  dimensions          = each.value
  statistic           = "Maximum"
  period              = 300
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  evaluation_periods  = 1
  datapoints_to_alarm = 1
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
  tags = {
    Environment = "production"
    Application = "ai-technical-support"
  }
}

data "aws_iam_policy_document" "tables_endpoint" {
  statement {
    sid     = "TheseTables"
    actions = ["dynamodb:*"]
    resources = [
      aws_dynamodb_table.prod_tickets_unified.arn,
      "${aws_dynamodb_table.prod_tickets_unified.arn}/*",
      aws_dynamodb_table.prod_metrics.arn,
      "${aws_dynamodb_table.prod_metrics.arn}/*",
    ]

    principals {
      type        = "*"
      identifiers = ["*"]
    }

    condition {
      test     = "StringEquals"
      variable = "aws:PrincipalAccount"
      values   = [data.aws_caller_identity.current.account_id]
    }
  }

  statement {
    sid       = "OfNoTable"
    actions   = ["dynamodb:ListBackups"]
    resources = ["*"]

    principals {
      type        = "*"
      identifiers = ["*"]
    }

    condition {
      test     = "StringEquals"
      variable = "aws:PrincipalAccount"
      values   = [data.aws_caller_identity.current.account_id]
    }
  }

  statement {
    sid       = "OnlyOverTls"
    effect    = "Deny"
    actions   = ["dynamodb:*"]
    resources = ["*"]

    principals {
      type        = "*"
      identifiers = ["*"]
    }

    condition {
      test     = "Bool"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }
  }
}

resource "aws_vpc_endpoint" "tables" {
  vpc_id            = var.vpc_id
  service_name      = "com.amazonaws.${data.aws_region.current.region}.dynamodb"
  vpc_endpoint_type = "Gateway"
  route_table_ids   = var.route_table_ids
  policy            = data.aws_iam_policy_document.tables_endpoint.json
  tags = {
    Environment = "production"
    Application = "ai-technical-support"
  }
}

output "table_arns" {
  description = "The tables, by name."
  value = {
    "prod-tickets-unified" = aws_dynamodb_table.prod_tickets_unified.arn
    "prod-metrics"         = aws_dynamodb_table.prod_metrics.arn
  }
}

output "stream_arns" {
  description = "The streams, by the name of their table."
  value = {
    "prod-tickets-unified" = aws_dynamodb_table.prod_tickets_unified.stream_arn
  }
}

output "policy_arns" {
  description = "The policies, by role."
  value = {
    reader  = aws_iam_policy.reader.arn
    writer  = aws_iam_policy.writer.arn
    service = aws_iam_policy.service.arn
    tenant  = aws_iam_policy.tenant.arn
    keeper  = aws_iam_policy.keeper.arn
  }
}

output "failure_queue_urls" {
  description = "The queues of what functions failed at."
  value = {
    "prod-tickets-unified-numbers" = aws_sqs_queue.prod_tickets_unified_numbers_failures.url
  }
}

output "key_arn" {
  description = "The key that encrypts the tables."
  value       = aws_kms_key.tables.arn
}
