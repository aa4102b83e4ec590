# Written by tavola iac terraform for poc-itsm-tickets, with alarms policies, sum 673668a4e3d6a7fd.

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
  description = "A prefix for all names, such as dev-, so that an account can have several copies of the module."
  type        = string
  default     = ""

  validation {
    condition     = can(regex("^[A-Za-z0-9_-]{0,20}$", var.prefix))
    error_message = "The prefix may have up to 20 letters, digits, _ and -."
  }
}

variable "alarm_topic_arns" {
  description = "The SNS topics that alarms notify; empty for none."
  type        = list(string)
  default     = []
}

resource "aws_dynamodb_table" "poc_itsm_tickets" {
  name                        = "${var.prefix}poc-itsm-tickets"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "ticket_id"
  table_class                 = "STANDARD"
  deletion_protection_enabled = false

  attribute {
    name = "ticket_id"
    type = "S"
  }

  attribute {
    name = "caller_id"
    type = "S"
  }

  attribute {
    name = "created_at"
    type = "S"
  }

  global_secondary_index {
    name            = "CallerIdIndex"
    projection_type = "ALL"

    key_schema {
      attribute_name = "caller_id"
      key_type       = "HASH"
    }

    key_schema {
      attribute_name = "created_at"
      key_type       = "RANGE"
    }
  }

  tags = {
    Environment = "PoC"
    Project     = "AI-L1-Support"
  }

  lifecycle {
    prevent_destroy = true
  }
}

data "aws_iam_policy_document" "reader" {
  statement {
    sid       = "ServiceTicketsRead"
    actions   = ["dynamodb:GetItem"]
    resources = [aws_dynamodb_table.poc_itsm_tickets.arn]
  }

  statement {
    sid       = "ServiceTicketsByCallerQuery"
    actions   = ["dynamodb:Query"]
    resources = ["${aws_dynamodb_table.poc_itsm_tickets.arn}/index/CallerIdIndex"]
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
  name        = "${var.prefix}poc-itsm-tickets-reader"
  description = "Runs every read pattern of the design; no writes."
  policy      = data.aws_iam_policy_document.reader.json
  tags = {
    Environment = "PoC"
    Project     = "AI-L1-Support"
  }
}

data "aws_iam_policy_document" "writer" {
  statement {
    sid       = "ServiceTicketsWrite"
    actions   = ["dynamodb:PutItem"]
    resources = [aws_dynamodb_table.poc_itsm_tickets.arn]
  }

  statement {
    sid       = "ServiceTicketsWrite2"
    actions   = ["dynamodb:UpdateItem"]
    resources = [aws_dynamodb_table.poc_itsm_tickets.arn]

    condition {
      test     = "ForAllValues:StringEquals"
      variable = "dynamodb:Attributes"
      values = [
        "ticket_id",
        "caller_id",
        "issue_description",
        "status",
        "created_at",
        "updated_at",
        "comments",
      ]
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
  name        = "${var.prefix}poc-itsm-tickets-writer"
  description = "Runs every write of the design, with the reads that these need."
  policy      = data.aws_iam_policy_document.writer.json
  tags = {
    Environment = "PoC"
    Project     = "AI-L1-Support"
  }
}

data "aws_iam_policy_document" "service" {
  statement {
    sid       = "ServiceTicketsItems"
    actions   = ["dynamodb:GetItem", "dynamodb:PutItem"]
    resources = [aws_dynamodb_table.poc_itsm_tickets.arn]
  }

  statement {
    sid       = "ServiceTicketsByCallerQuery"
    actions   = ["dynamodb:Query"]
    resources = ["${aws_dynamodb_table.poc_itsm_tickets.arn}/index/CallerIdIndex"]
  }

  statement {
    sid       = "ServiceTicketsWrite"
    actions   = ["dynamodb:UpdateItem"]
    resources = [aws_dynamodb_table.poc_itsm_tickets.arn]

    condition {
      test     = "ForAllValues:StringEquals"
      variable = "dynamodb:Attributes"
      values = [
        "ticket_id",
        "caller_id",
        "issue_description",
        "status",
        "created_at",
        "updated_at",
        "comments",
      ]
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
  name        = "${var.prefix}poc-itsm-tickets-service"
  description = "Runs every access pattern of the design."
  policy      = data.aws_iam_policy_document.service.json
  tags = {
    Environment = "PoC"
    Project     = "AI-L1-Support"
  }
}

resource "aws_cloudwatch_metric_alarm" "read_throttles" {
  for_each = {
    "poc-itsm-tickets-read-throttles" = {
      TableName = aws_dynamodb_table.poc_itsm_tickets.name
    }
    "poc-itsm-tickets-CallerIdIndex-read-throttles" = {
      TableName                = aws_dynamodb_table.poc_itsm_tickets.name
      GlobalSecondaryIndexName = "CallerIdIndex"
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
    Environment = "PoC"
    Project     = "AI-L1-Support"
  }
}

resource "aws_cloudwatch_metric_alarm" "write_throttles" {
  for_each = {
    "poc-itsm-tickets-write-throttles" = {
      TableName = aws_dynamodb_table.poc_itsm_tickets.name
    }
    "poc-itsm-tickets-CallerIdIndex-write-throttles" = {
      TableName                = aws_dynamodb_table.poc_itsm_tickets.name
      GlobalSecondaryIndexName = "CallerIdIndex"
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
    Environment = "PoC"
    Project     = "AI-L1-Support"
  }
}

resource "aws_cloudwatch_metric_alarm" "backfill_throttles" {
  for_each = {
    "poc-itsm-tickets-CallerIdIndex-backfill-throttles" = {
      TableName                = aws_dynamodb_table.poc_itsm_tickets.name
      GlobalSecondaryIndexName = "CallerIdIndex"
    }
  }

  alarm_name          = "${var.prefix}${each.key}"
  alarm_description   = "The backfill of an index is throttled."
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
    Environment = "PoC"
    Project     = "AI-L1-Support"
  }
}

resource "aws_cloudwatch_metric_alarm" "system_errors" {
  for_each = {
    "poc-itsm-tickets-system-errors" = {
      TableName = aws_dynamodb_table.poc_itsm_tickets.name
    }
  }

  alarm_name          = "${var.prefix}${each.key}"
  alarm_description   = "DynamoDB returns internal errors."
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
    Environment = "PoC"
    Project     = "AI-L1-Support"
  }
}

resource "aws_cloudwatch_metric_alarm" "user_errors" {
  alarm_name          = "${var.prefix}poc-itsm-tickets-user-errors"
  alarm_description   = "Requests are rejected as invalid, for any table of the account in this Region."
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
    Environment = "PoC"
    Project     = "AI-L1-Support"
  }
}

output "table_arns" {
  description = "The tables, by name."
  value = {
    "poc-itsm-tickets" = aws_dynamodb_table.poc_itsm_tickets.arn
  }
}

output "policy_arns" {
  description = "The policies, by role."
  value = {
    reader  = aws_iam_policy.reader.arn
    writer  = aws_iam_policy.writer.arn
    service = aws_iam_policy.service.arn
  }
}
