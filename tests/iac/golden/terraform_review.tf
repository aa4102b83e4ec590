# Written by tavola iac terraform for terraform-spacelift-ai-reviewer-reviews-dev, with key endpoint alarms policies function:terraform-spacelift-ai-reviewer-reviews-dev-statistics failures:terraform-spacelift-ai-reviewer-reviews-dev-statistics, sum 64eea4aaf4b3d62b.

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

variable "terraform_spacelift_ai_reviewer_reviews_dev_statistics_code_key" {
  description = "The zip file of terraform-spacelift-ai-reviewer-reviews-dev-statistics in that bucket."
  type        = string
}

variable "terraform_spacelift_ai_reviewer_reviews_dev_statistics_policy_arns" {
  description = "Policies of what terraform-spacelift-ai-reviewer-reviews-dev-statistics does besides."
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

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_kms_alias" "tables" {
  name          = "alias/${var.prefix}terraform-spacelift-ai-reviewer-reviews-dev-tables"
  target_key_id = aws_kms_key.tables.key_id
}

resource "aws_dynamodb_table" "terraform_spacelift_ai_reviewer_reviews_dev" {
  name                        = "${var.prefix}terraform-spacelift-ai-reviewer-reviews-dev"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "PK"
  range_key                   = "SK"
  table_class                 = "STANDARD"
  deletion_protection_enabled = false
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
    name = "GSI4PK"
    type = "S"
  }

  attribute {
    name = "GSI4SK"
    type = "S"
  }

  global_secondary_index {
    name            = "GSI1"
    projection_type = "INCLUDE"
    non_key_attributes = [
      "ReviewId",
      "StackId",
      "SpaceliftRunId",
      "Status",
      "OverallRiskScore",
      "FoundRiskScore",
      "FindingsTotal",
      "HighFindings",
      "FixApplied",
      "StatusSince",
      "CreatedAt",
      "CreatedBy",
      "Version",
      "UpdatedAt",
      "EntityType",
      "TTL",
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
    name            = "GSI2"
    projection_type = "INCLUDE"
    non_key_attributes = [
      "ReviewId",
      "StackId",
      "SpaceliftRunId",
      "Status",
      "OverallRiskScore",
      "FoundRiskScore",
      "FindingsTotal",
      "HighFindings",
      "FixApplied",
      "StatusSince",
      "CreatedAt",
      "CreatedBy",
      "Version",
      "UpdatedAt",
      "EntityType",
      "TTL",
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
    name            = "GSI3"
    projection_type = "ALL"

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
    name            = "GSI4"
    projection_type = "INCLUDE"
    non_key_attributes = [
      "ReviewId",
      "StackId",
      "SpaceliftRunId",
      "Status",
      "OverallRiskScore",
      "FoundRiskScore",
      "FindingsTotal",
      "HighFindings",
      "FixApplied",
      "StatusSince",
      "CreatedAt",
      "CreatedBy",
      "Version",
      "UpdatedAt",
      "EntityType",
      "TTL",
    ]

    key_schema {
      attribute_name = "GSI4PK"
      key_type       = "HASH"
    }

    key_schema {
      attribute_name = "GSI4SK"
      key_type       = "RANGE"
    }
  }

  ttl {
    attribute_name = "TTL"
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

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_sqs_queue" "terraform_spacelift_ai_reviewer_reviews_dev_statistics_failures" {
  name_prefix               = "${var.prefix}terraform-spacelift-ai-r-failures-"
  message_retention_seconds = 1209600
  sqs_managed_sse_enabled   = true
}

resource "aws_cloudwatch_log_group" "terraform_spacelift_ai_reviewer_reviews_dev_statistics" {
  name              = "/aws/lambda/${var.prefix}terraform-spacelift-ai-reviewer-reviews-dev-statistics"
  retention_in_days = 30
}

data "aws_iam_policy_document" "terraform_spacelift_ai_reviewer_reviews_dev_statistics_trust" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["lambda.amazonaws.com"]
    }
  }
}

data "aws_iam_policy_document" "terraform_spacelift_ai_reviewer_reviews_dev_statistics" {
  statement {
    sid = "ReviewsStream"
    actions = [
      "dynamodb:DescribeStream",
      "dynamodb:GetRecords",
      "dynamodb:GetShardIterator",
      "dynamodb:ListStreams",
    ]
    resources = [aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.stream_arn]
  }

  statement {
    sid       = "ReviewsDescribe"
    actions   = ["dynamodb:DescribeTable"]
    resources = [aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.arn]
  }

  statement {
    sid = "ReviewsItems"
    actions = [
      "dynamodb:BatchGetItem",
      "dynamodb:ConditionCheckItem",
      "dynamodb:GetItem",
      "dynamodb:PutItem",
      "dynamodb:Query",
    ]
    resources = [aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["DAYS", "FINDING#*", "ISSUE#*", "MARK#*", "STACK#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "ReviewsWrite"
    actions   = ["dynamodb:UpdateItem"]
    resources = [aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["STACK#*"]
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
        "StackId",
        "TotalReviews",
        "AssessedReviews",
        "RiskSum",
        "HighRiskCount",
        "MediumRiskCount",
        "LowRiskCount",
        "PendingReviews",
        "FailedReviews",
        "FixedReviews",
        "TotalFindings",
        "SecurityFindings",
        "CostFindings",
        "ReliabilityFindings",
        "LastReviewDate",
        "UpdatedAt",
        "Revision",
        "GSI3PK",
        "GSI3SK",
        "EntityType",
        "TTL",
      ]
    }
  }

  statement {
    sid       = "ReviewsWrite2"
    actions   = ["dynamodb:UpdateItem"]
    resources = [aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["ISSUE#*"]
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
        "IssueHash",
        "Category",
        "Title",
        "FilePath",
        "OccurrenceCount",
        "OpenCount",
        "FirstSeen",
        "LastSeen",
        "UpdatedAt",
        "Revision",
        "StackId",
        "AffectedRuns",
        "FixedAt",
        "GSI3PK",
        "GSI3SK",
        "EntityType",
        "TTL",
      ]
    }
  }

  statement {
    sid       = "ReviewsWrite3"
    actions   = ["dynamodb:UpdateItem"]
    resources = [aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["ISSUE#*"]
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
        "IssueHash",
        "Category",
        "Title",
        "FilePath",
        "OccurrenceCount",
        "OpenCount",
        "FirstSeen",
        "LastSeen",
        "UpdatedAt",
        "Revision",
        "GSI3PK",
        "GSI3SK",
        "EntityType",
        "TTL",
      ]
    }
  }

  statement {
    sid       = "ReviewsWrite4"
    actions   = ["dynamodb:UpdateItem"]
    resources = [aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.arn]

    condition {
      test     = "ForAllValues:StringEquals"
      variable = "dynamodb:LeadingKeys"
      values   = ["DAYS"]
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
        "Day",
        "Reviews",
        "Assessed",
        "RiskSum",
        "FoundSum",
        "High",
        "Medium",
        "Low",
        "Pending",
        "Failed",
        "Fixed",
        "Findings",
        "Revision",
        "EntityType",
        "TTL",
      ]
    }
  }

  statement {
    sid       = "ReviewsWrite5"
    actions   = ["dynamodb:UpdateItem"]
    resources = [aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.arn]

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
      values   = ["PK", "SK", "projector", "source", "kind", "place", "shares", "TTL", "EntityType"]
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
    resources = ["${aws_cloudwatch_log_group.terraform_spacelift_ai_reviewer_reviews_dev_statistics.arn}:*"]
  }

  statement {
    sid       = "Failures"
    actions   = ["sqs:SendMessage"]
    resources = [aws_sqs_queue.terraform_spacelift_ai_reviewer_reviews_dev_statistics_failures.arn]
  }
}

resource "aws_iam_role" "terraform_spacelift_ai_reviewer_reviews_dev_statistics" {
  name               = "${var.prefix}terraform-spacelift-ai-reviewer-reviews-dev-statistics"
  description        = "What terraform-spacelift-ai-reviewer-reviews-dev-statistics may do."
  assume_role_policy = data.aws_iam_policy_document.terraform_spacelift_ai_reviewer_reviews_dev_statistics_trust.json
}

resource "aws_iam_role_policy" "terraform_spacelift_ai_reviewer_reviews_dev_statistics" {
  name   = "consumer"
  role   = aws_iam_role.terraform_spacelift_ai_reviewer_reviews_dev_statistics.id
  policy = data.aws_iam_policy_document.terraform_spacelift_ai_reviewer_reviews_dev_statistics.json
}

resource "aws_iam_role_policy_attachment" "terraform_spacelift_ai_reviewer_reviews_dev_statistics" {
  for_each = toset(var.terraform_spacelift_ai_reviewer_reviews_dev_statistics_policy_arns)

  role       = aws_iam_role.terraform_spacelift_ai_reviewer_reviews_dev_statistics.name
  policy_arn = each.value
}

resource "aws_lambda_function" "terraform_spacelift_ai_reviewer_reviews_dev_statistics" {
  function_name = "${var.prefix}terraform-spacelift-ai-reviewer-reviews-dev-statistics"
  runtime       = "python3.13"
  handler       = "review_statistics.handler"
  s3_bucket     = var.code_bucket
  s3_key        = var.terraform_spacelift_ai_reviewer_reviews_dev_statistics_code_key
  role          = aws_iam_role.terraform_spacelift_ai_reviewer_reviews_dev_statistics.arn
  timeout       = 60
  memory_size   = 256

  logging_config {
    log_format = "Text"
    log_group  = aws_cloudwatch_log_group.terraform_spacelift_ai_reviewer_reviews_dev_statistics.name
  }
}

resource "aws_lambda_event_source_mapping" "terraform_spacelift_ai_reviewer_reviews_dev_statistics" {
  event_source_arn                   = aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.stream_arn
  function_name                      = aws_lambda_function.terraform_spacelift_ai_reviewer_reviews_dev_statistics.arn
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
            EntityType = {
              S = ["REVIEW", "REVIEW_VERSION", "FINDING"]
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
            EntityType = {
              S = ["REVIEW", "REVIEW_VERSION", "FINDING"]
            }
          }
        }
      })
    }
  }

  destination_config {
    on_failure {
      destination_arn = aws_sqs_queue.terraform_spacelift_ai_reviewer_reviews_dev_statistics_failures.arn
    }
  }

  depends_on = [aws_iam_role_policy.terraform_spacelift_ai_reviewer_reviews_dev_statistics]
}

data "aws_iam_policy_document" "reader" {
  statement {
    sid       = "ReviewsRead"
    actions   = ["dynamodb:GetItem"]
    resources = [aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["DAYS", "HISTORY#*", "ISSUE#*", "REVIEW#*", "STACK#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "ReviewsStackHistoryQuery"
    actions   = ["dynamodb:Query"]
    resources = ["${aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.arn}/index/GSI1"]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["STACK#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "ReviewsRiskQuery"
    actions   = ["dynamodb:Query"]
    resources = ["${aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.arn}/index/GSI2"]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["RISK#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "ReviewsStatusQuery"
    actions   = ["dynamodb:Query"]
    resources = ["${aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.arn}/index/GSI4"]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["ACTOR#*", "STATUS#*#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "ReviewsQuery"
    actions   = ["dynamodb:Query"]
    resources = [aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["DAYS", "HISTORY#*", "ISSUE#*", "RUN#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "ReviewsRead2"
    actions   = ["dynamodb:BatchGetItem"]
    resources = [aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["FINDING#*", "HISTORY#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "ReviewsIssuesQuery"
    actions   = ["dynamodb:Query"]
    resources = ["${aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.arn}/index/GSI3"]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["CATEGORY#*", "ISSUE#*", "STACK#*", "STACKS"]
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
  name        = "${var.prefix}terraform-spacelift-ai-reviewer-reviews-dev-reader"
  description = "Reads all that the design's access patterns read, and writes nothing."
  policy      = data.aws_iam_policy_document.reader.json
}

data "aws_iam_policy_document" "writer" {
  statement {
    sid       = "ReviewsWrite"
    actions   = ["dynamodb:ConditionCheckItem", "dynamodb:PutItem"]
    resources = [aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values = [
        "DAYS",
        "FINDING#*",
        "HISTORY#*",
        "ISSUE#*",
        "MARK#*",
        "REQUEST#*#*",
        "REVIEW#*",
        "RUN#*",
        "STACK#*",
      ]
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
  name        = "${var.prefix}terraform-spacelift-ai-reviewer-reviews-dev-writer"
  description = "Makes every write of the design, with the reads that these take."
  policy      = data.aws_iam_policy_document.writer.json
}

data "aws_iam_policy_document" "service" {
  statement {
    sid       = "ReviewsRead"
    actions   = ["dynamodb:GetItem"]
    resources = [aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["DAYS", "HISTORY#*", "ISSUE#*", "REVIEW#*", "STACK#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "ReviewsStackHistoryQuery"
    actions   = ["dynamodb:Query"]
    resources = ["${aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.arn}/index/GSI1"]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["STACK#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "ReviewsRiskQuery"
    actions   = ["dynamodb:Query"]
    resources = ["${aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.arn}/index/GSI2"]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["RISK#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "ReviewsStatusQuery"
    actions   = ["dynamodb:Query"]
    resources = ["${aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.arn}/index/GSI4"]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["ACTOR#*", "STATUS#*#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "ReviewsQuery"
    actions   = ["dynamodb:Query"]
    resources = [aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["DAYS", "HISTORY#*", "ISSUE#*", "RUN#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "ReviewsRead2"
    actions   = ["dynamodb:BatchGetItem"]
    resources = [aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["FINDING#*", "HISTORY#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "ReviewsIssuesQuery"
    actions   = ["dynamodb:Query"]
    resources = ["${aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.arn}/index/GSI3"]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["CATEGORY#*", "ISSUE#*", "STACK#*", "STACKS"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "ReviewsWrite"
    actions   = ["dynamodb:ConditionCheckItem", "dynamodb:PutItem"]
    resources = [aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values = [
        "DAYS",
        "FINDING#*",
        "HISTORY#*",
        "ISSUE#*",
        "MARK#*",
        "REQUEST#*#*",
        "REVIEW#*",
        "RUN#*",
        "STACK#*",
      ]
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
  name        = "${var.prefix}terraform-spacelift-ai-reviewer-reviews-dev-service"
  description = "Reads and writes all that the design's access patterns do."
  policy      = data.aws_iam_policy_document.service.json
}

data "aws_iam_policy_document" "keeper" {
  statement {
    sid       = "Keep"
    actions   = ["dynamodb:CreateBackup", "dynamodb:DescribeContinuousBackups", "dynamodb:DescribeTable"]
    resources = [aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.arn]
  }

  statement {
    sid       = "Look"
    actions   = ["dynamodb:DescribeBackup"]
    resources = ["${aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.arn}/backup/*"]
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
  name        = "${var.prefix}terraform-spacelift-ai-reviewer-reviews-dev-keeper"
  description = "Makes and looks at backups; it deletes and restores none."
  policy      = data.aws_iam_policy_document.keeper.json
}

resource "aws_cloudwatch_metric_alarm" "read_throttles" {
  for_each = {
    "terraform-spacelift-ai-reviewer-reviews-dev-read-throttles" = {
      TableName = aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.name
    }
    "terraform-spacelift-ai-reviewer-reviews-dev-GSI1-read-throttles" = {
      TableName                = aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.name
      GlobalSecondaryIndexName = "GSI1"
    }
    "terraform-spacelift-ai-reviewer-reviews-dev-GSI2-read-throttles" = {
      TableName                = aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.name
      GlobalSecondaryIndexName = "GSI2"
    }
    "terraform-spacelift-ai-reviewer-reviews-dev-GSI3-read-throttles" = {
      TableName                = aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.name
      GlobalSecondaryIndexName = "GSI3"
    }
    "terraform-spacelift-ai-reviewer-reviews-dev-GSI4-read-throttles" = {
      TableName                = aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.name
      GlobalSecondaryIndexName = "GSI4"
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
}

resource "aws_cloudwatch_metric_alarm" "write_throttles" {
  for_each = {
    "terraform-spacelift-ai-reviewer-reviews-dev-write-throttles" = {
      TableName = aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.name
    }
    "terraform-spacelift-ai-reviewer-reviews-dev-GSI1-write-throttles" = {
      TableName                = aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.name
      GlobalSecondaryIndexName = "GSI1"
    }
    "terraform-spacelift-ai-reviewer-reviews-dev-GSI2-write-throttles" = {
      TableName                = aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.name
      GlobalSecondaryIndexName = "GSI2"
    }
    "terraform-spacelift-ai-reviewer-reviews-dev-GSI3-write-throttles" = {
      TableName                = aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.name
      GlobalSecondaryIndexName = "GSI3"
    }
    "terraform-spacelift-ai-reviewer-reviews-dev-GSI4-write-throttles" = {
      TableName                = aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.name
      GlobalSecondaryIndexName = "GSI4"
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
}

resource "aws_cloudwatch_metric_alarm" "backfill_throttles" {
  for_each = {
    "terraform-spacelift-ai-reviewer-reviews-dev-GSI1-backfill-throttles" = {
      TableName                = aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.name
      GlobalSecondaryIndexName = "GSI1"
    }
    "terraform-spacelift-ai-reviewer-reviews-dev-GSI2-backfill-throttles" = {
      TableName                = aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.name
      GlobalSecondaryIndexName = "GSI2"
    }
    "terraform-spacelift-ai-reviewer-reviews-dev-GSI3-backfill-throttles" = {
      TableName                = aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.name
      GlobalSecondaryIndexName = "GSI3"
    }
    "terraform-spacelift-ai-reviewer-reviews-dev-GSI4-backfill-throttles" = {
      TableName                = aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.name
      GlobalSecondaryIndexName = "GSI4"
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
}

resource "aws_cloudwatch_metric_alarm" "system_errors" {
  for_each = {
    "terraform-spacelift-ai-reviewer-reviews-dev-system-errors" = {
      TableName = aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.name
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
}

resource "aws_cloudwatch_metric_alarm" "user_errors" {
  alarm_name          = "${var.prefix}terraform-spacelift-ai-reviewer-reviews-dev-user-errors"
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
}

resource "aws_cloudwatch_metric_alarm" "iterator_age" {
  for_each = {
    "terraform-spacelift-ai-reviewer-reviews-dev-statistics-iterator-age" = {
      FunctionName = aws_lambda_function.terraform_spacelift_ai_reviewer_reviews_dev_statistics.function_name
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
}

resource "aws_cloudwatch_metric_alarm" "errors" {
  for_each = {
    "terraform-spacelift-ai-reviewer-reviews-dev-statistics-errors" = {
      FunctionName = aws_lambda_function.terraform_spacelift_ai_reviewer_reviews_dev_statistics.function_name
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
}

resource "aws_cloudwatch_metric_alarm" "failed_records" {
  for_each = {
    "terraform-spacelift-ai-reviewer-reviews-dev-statistics-failed-records" = {
      QueueName = aws_sqs_queue.terraform_spacelift_ai_reviewer_reviews_dev_statistics_failures.name
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
}

data "aws_iam_policy_document" "tables_endpoint" {
  statement {
    sid     = "TheseTables"
    actions = ["dynamodb:*"]
    resources = [
      aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.arn,
      "${aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.arn}/*",
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
}

output "table_arns" {
  description = "The tables, by name."
  value = {
    "terraform-spacelift-ai-reviewer-reviews-dev" = aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.arn
  }
}

output "stream_arns" {
  description = "The streams, by the name of their table."
  value = {
    "terraform-spacelift-ai-reviewer-reviews-dev" = aws_dynamodb_table.terraform_spacelift_ai_reviewer_reviews_dev.stream_arn
  }
}

output "policy_arns" {
  description = "The policies, by role."
  value = {
    reader  = aws_iam_policy.reader.arn
    writer  = aws_iam_policy.writer.arn
    service = aws_iam_policy.service.arn
    keeper  = aws_iam_policy.keeper.arn
  }
}

output "failure_queue_urls" {
  description = "The queues of what functions failed at."
  value = {
    "terraform-spacelift-ai-reviewer-reviews-dev-statistics" = aws_sqs_queue.terraform_spacelift_ai_reviewer_reviews_dev_statistics_failures.url
  }
}

output "key_arn" {
  description = "The key that encrypts the tables."
  value       = aws_kms_key.tables.arn
}
