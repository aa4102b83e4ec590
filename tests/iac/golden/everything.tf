# Written by tavola iac terraform for shop.orders_2026 shop-stock, with endpoint alarms policies function:shop-orders_2026-mail function:shop-orders_2026-audit function:shop-orders_2026-bell failures:shop-orders_2026-audit failures:shop-orders_2026-bell replica:shop-stock:eu-central-1 replica:shop-stock:us-east-1 apart:shop.orders_2026, sum 39d5fdbd414d8f66.

terraform {
  required_version = ">= 1.5"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 6.44"
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

variable "shop_orders_2026_mail_code_key" {
  description = "The zip file of shop-orders_2026-mail in that bucket."
  type        = string
}

variable "shop_orders_2026_mail_policy_arns" {
  description = "Policies of what shop-orders_2026-mail does besides."
  type        = list(string)
  default     = []
}

variable "shop_orders_2026_audit_code_key" {
  description = "The zip file of shop-orders_2026-audit in that bucket."
  type        = string
}

variable "shop_orders_2026_audit_policy_arns" {
  description = "Policies of what shop-orders_2026-audit does besides."
  type        = list(string)
  default     = []
}

variable "shop_orders_2026_bell_code_key" {
  description = "The zip file of shop-orders_2026-bell in that bucket."
  type        = string
}

variable "shop_orders_2026_bell_policy_arns" {
  description = "Policies of what shop-orders_2026-bell does besides."
  type        = list(string)
  default     = []
}

variable "replica_kms_key_arns" {
  description = "The ARN of the KMS key that encrypts the replicas, by region."
  type        = map(string)
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

data "aws_caller_identity" "current" {}

data "aws_region" "current" {}

data "aws_kms_key" "alias_shop" {
  key_id = "alias/shop"
}

resource "aws_dynamodb_table" "shop_orders_2026" {
  name                        = "${var.prefix}shop.orders_2026"
  billing_mode                = "PROVISIONED"
  read_capacity               = 20
  write_capacity              = 10
  hash_key                    = "pk"
  range_key                   = "sk"
  table_class                 = "STANDARD_INFREQUENT_ACCESS"
  deletion_protection_enabled = true
  stream_enabled              = true
  stream_view_type            = "NEW_AND_OLD_IMAGES"

  attribute {
    name = "pk"
    type = "S"
  }

  attribute {
    name = "sk"
    type = "S"
  }

  attribute {
    name = "amount"
    type = "N"
  }

  local_secondary_index {
    name            = "by.amount"
    range_key       = "amount"
    projection_type = "ALL"
  }

  ttl {
    attribute_name = "ends_at"
    enabled        = true
  }

  point_in_time_recovery {
    enabled                 = true
    recovery_period_in_days = 7
  }

  server_side_encryption {
    enabled     = true
    kms_key_arn = "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
  }

  tags = {
    Team          = "shop"
    "Cost centre" = "4711 «north»"
    Note          = "He said \"$${no}\" to 100 %%{of} them"
  }

  lifecycle {
    prevent_destroy = true
    ignore_changes  = [read_capacity, write_capacity]
  }
}

# Of a table that exists, import the index before the first apply, or it is dropped and made anew (var.prefix before the name):
#   terraform import aws_dynamodb_global_secondary_index.shop_orders_2026_by_day 'shop.orders_2026,by-day'
resource "aws_dynamodb_global_secondary_index" "shop_orders_2026_by_day" {
  table_name = aws_dynamodb_table.shop_orders_2026.name
  index_name = "by-day"

  key_schema {
    attribute_name = "shop"
    attribute_type = "S"
    key_type       = "HASH"
  }

  key_schema {
    attribute_name = "day"
    attribute_type = "S"
    key_type       = "HASH"
  }

  key_schema {
    attribute_name = "amount"
    attribute_type = "N"
    key_type       = "RANGE"
  }

  key_schema {
    attribute_name = "order_id"
    attribute_type = "S"
    key_type       = "RANGE"
  }

  projection {
    projection_type    = "INCLUDE"
    non_key_attributes = ["customer"]
  }

  provisioned_throughput {
    read_capacity_units  = 20
    write_capacity_units = 10
  }

  lifecycle {
    ignore_changes = [provisioned_throughput]
  }
}

# Of a table that exists, import the index before the first apply, or it is dropped and made anew (var.prefix before the name):
#   terraform import aws_dynamodb_global_secondary_index.shop_orders_2026_by_customer 'shop.orders_2026,by_customer'
resource "aws_dynamodb_global_secondary_index" "shop_orders_2026_by_customer" {
  table_name = aws_dynamodb_table.shop_orders_2026.name
  index_name = "by_customer"

  key_schema {
    attribute_name = "G1PK"
    attribute_type = "S"
    key_type       = "HASH"
  }

  key_schema {
    attribute_name = "G1SK"
    attribute_type = "S"
    key_type       = "RANGE"
  }

  projection {
    projection_type = "KEYS_ONLY"
  }

  provisioned_throughput {
    read_capacity_units  = 20
    write_capacity_units = 10
  }

  lifecycle {
    ignore_changes = [provisioned_throughput]
  }
}

resource "aws_appautoscaling_target" "shop_orders_2026_read" {
  service_namespace  = "dynamodb"
  resource_id        = "table/${aws_dynamodb_table.shop_orders_2026.name}"
  scalable_dimension = "dynamodb:table:ReadCapacityUnits"
  min_capacity       = 20
  max_capacity       = 400
}

resource "aws_appautoscaling_policy" "shop_orders_2026_read" {
  name               = "read-utilization"
  policy_type        = "TargetTrackingScaling"
  service_namespace  = aws_appautoscaling_target.shop_orders_2026_read.service_namespace
  resource_id        = aws_appautoscaling_target.shop_orders_2026_read.resource_id
  scalable_dimension = aws_appautoscaling_target.shop_orders_2026_read.scalable_dimension

  target_tracking_scaling_policy_configuration {
    target_value = 65

    predefined_metric_specification {
      predefined_metric_type = "DynamoDBReadCapacityUtilization"
    }
  }
}

resource "aws_appautoscaling_target" "shop_orders_2026_write" {
  service_namespace  = "dynamodb"
  resource_id        = "table/${aws_dynamodb_table.shop_orders_2026.name}"
  scalable_dimension = "dynamodb:table:WriteCapacityUnits"
  min_capacity       = 10
  max_capacity       = 200
}

resource "aws_appautoscaling_policy" "shop_orders_2026_write" {
  name               = "write-utilization"
  policy_type        = "TargetTrackingScaling"
  service_namespace  = aws_appautoscaling_target.shop_orders_2026_write.service_namespace
  resource_id        = aws_appautoscaling_target.shop_orders_2026_write.resource_id
  scalable_dimension = aws_appautoscaling_target.shop_orders_2026_write.scalable_dimension

  target_tracking_scaling_policy_configuration {
    target_value = 65

    predefined_metric_specification {
      predefined_metric_type = "DynamoDBWriteCapacityUtilization"
    }
  }
}

resource "aws_appautoscaling_target" "shop_orders_2026_by_day_read" {
  service_namespace  = "dynamodb"
  resource_id        = "table/${aws_dynamodb_table.shop_orders_2026.name}/index/${aws_dynamodb_global_secondary_index.shop_orders_2026_by_day.index_name}"
  scalable_dimension = "dynamodb:index:ReadCapacityUnits"
  min_capacity       = 20
  max_capacity       = 400
}

resource "aws_appautoscaling_policy" "shop_orders_2026_by_day_read" {
  name               = "read-utilization"
  policy_type        = "TargetTrackingScaling"
  service_namespace  = aws_appautoscaling_target.shop_orders_2026_by_day_read.service_namespace
  resource_id        = aws_appautoscaling_target.shop_orders_2026_by_day_read.resource_id
  scalable_dimension = aws_appautoscaling_target.shop_orders_2026_by_day_read.scalable_dimension

  target_tracking_scaling_policy_configuration {
    target_value = 65

    predefined_metric_specification {
      predefined_metric_type = "DynamoDBReadCapacityUtilization"
    }
  }
}

resource "aws_appautoscaling_target" "shop_orders_2026_by_day_write" {
  service_namespace  = "dynamodb"
  resource_id        = "table/${aws_dynamodb_table.shop_orders_2026.name}/index/${aws_dynamodb_global_secondary_index.shop_orders_2026_by_day.index_name}"
  scalable_dimension = "dynamodb:index:WriteCapacityUnits"
  min_capacity       = 10
  max_capacity       = 200
}

resource "aws_appautoscaling_policy" "shop_orders_2026_by_day_write" {
  name               = "write-utilization"
  policy_type        = "TargetTrackingScaling"
  service_namespace  = aws_appautoscaling_target.shop_orders_2026_by_day_write.service_namespace
  resource_id        = aws_appautoscaling_target.shop_orders_2026_by_day_write.resource_id
  scalable_dimension = aws_appautoscaling_target.shop_orders_2026_by_day_write.scalable_dimension

  target_tracking_scaling_policy_configuration {
    target_value = 65

    predefined_metric_specification {
      predefined_metric_type = "DynamoDBWriteCapacityUtilization"
    }
  }
}

resource "aws_appautoscaling_target" "shop_orders_2026_by_customer_read" {
  service_namespace  = "dynamodb"
  resource_id        = "table/${aws_dynamodb_table.shop_orders_2026.name}/index/${aws_dynamodb_global_secondary_index.shop_orders_2026_by_customer.index_name}"
  scalable_dimension = "dynamodb:index:ReadCapacityUnits"
  min_capacity       = 20
  max_capacity       = 400
}

resource "aws_appautoscaling_policy" "shop_orders_2026_by_customer_read" {
  name               = "read-utilization"
  policy_type        = "TargetTrackingScaling"
  service_namespace  = aws_appautoscaling_target.shop_orders_2026_by_customer_read.service_namespace
  resource_id        = aws_appautoscaling_target.shop_orders_2026_by_customer_read.resource_id
  scalable_dimension = aws_appautoscaling_target.shop_orders_2026_by_customer_read.scalable_dimension

  target_tracking_scaling_policy_configuration {
    target_value = 65

    predefined_metric_specification {
      predefined_metric_type = "DynamoDBReadCapacityUtilization"
    }
  }
}

resource "aws_appautoscaling_target" "shop_orders_2026_by_customer_write" {
  service_namespace  = "dynamodb"
  resource_id        = "table/${aws_dynamodb_table.shop_orders_2026.name}/index/${aws_dynamodb_global_secondary_index.shop_orders_2026_by_customer.index_name}"
  scalable_dimension = "dynamodb:index:WriteCapacityUnits"
  min_capacity       = 10
  max_capacity       = 200
}

resource "aws_appautoscaling_policy" "shop_orders_2026_by_customer_write" {
  name               = "write-utilization"
  policy_type        = "TargetTrackingScaling"
  service_namespace  = aws_appautoscaling_target.shop_orders_2026_by_customer_write.service_namespace
  resource_id        = aws_appautoscaling_target.shop_orders_2026_by_customer_write.resource_id
  scalable_dimension = aws_appautoscaling_target.shop_orders_2026_by_customer_write.scalable_dimension

  target_tracking_scaling_policy_configuration {
    target_value = 65

    predefined_metric_specification {
      predefined_metric_type = "DynamoDBWriteCapacityUtilization"
    }
  }
}

resource "aws_dynamodb_table" "shop_stock" {
  name                        = "${var.prefix}shop-stock"
  billing_mode                = "PROVISIONED"
  read_capacity               = 5
  write_capacity              = 5
  hash_key                    = "pk"
  range_key                   = "sk"
  table_class                 = "STANDARD"
  deletion_protection_enabled = false
  stream_enabled              = true
  stream_view_type            = "NEW_AND_OLD_IMAGES"

  attribute {
    name = "pk"
    type = "S"
  }

  attribute {
    name = "sk"
    type = "S"
  }

  attribute {
    name = "G1PK"
    type = "S"
  }

  attribute {
    name = "G1SK"
    type = "S"
  }

  global_secondary_index {
    name            = "by-place"
    projection_type = "ALL"
    read_capacity   = 5
    write_capacity  = 5

    key_schema {
      attribute_name = "G1PK"
      key_type       = "HASH"
    }

    key_schema {
      attribute_name = "G1SK"
      key_type       = "RANGE"
    }
  }

  point_in_time_recovery {
    enabled                 = true
    recovery_period_in_days = 35
  }

  server_side_encryption {
    enabled     = true
    kms_key_arn = data.aws_kms_key.alias_shop.arn
  }

  replica {
    region_name                 = "eu-central-1"
    kms_key_arn                 = var.replica_kms_key_arns["eu-central-1"]
    point_in_time_recovery      = true
    deletion_protection_enabled = false
    propagate_tags              = true
  }

  replica {
    region_name                 = "us-east-1"
    kms_key_arn                 = var.replica_kms_key_arns["us-east-1"]
    point_in_time_recovery      = true
    deletion_protection_enabled = false
    propagate_tags              = true
  }

  tags = {
    Team = "shop"
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_cloudwatch_log_group" "shop_orders_2026_mail" {
  name              = "/aws/lambda/${var.prefix}shop-orders_2026-mail"
  retention_in_days = 30
  tags = {
    Team = "shop"
  }
}

data "aws_iam_policy_document" "shop_orders_2026_mail_trust" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["lambda.amazonaws.com"]
    }
  }
}

data "aws_iam_policy_document" "shop_orders_2026_mail" {
  statement {
    sid = "OrdersStream"
    actions = [
      "dynamodb:DescribeStream",
      "dynamodb:GetRecords",
      "dynamodb:GetShardIterator",
      "dynamodb:ListStreams",
    ]
    resources = [aws_dynamodb_table.shop_orders_2026.stream_arn]
  }

  statement {
    sid       = "OrdersDescribe"
    actions   = ["dynamodb:DescribeTable"]
    resources = [aws_dynamodb_table.shop_orders_2026.arn]
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
    resources = ["${aws_cloudwatch_log_group.shop_orders_2026_mail.arn}:*"]
  }

  statement {
    sid       = "Failures"
    actions   = ["sns:Publish"]
    resources = ["arn:aws:sns:eu-west-1:123456789012:desk-failures"]
  }
}

resource "aws_iam_role" "shop_orders_2026_mail" {
  name               = "${var.prefix}shop-orders_2026-mail"
  description        = "What shop-orders_2026-mail may do."
  assume_role_policy = data.aws_iam_policy_document.shop_orders_2026_mail_trust.json
  tags = {
    Team = "shop"
  }
}

resource "aws_iam_role_policy" "shop_orders_2026_mail" {
  name   = "consumer"
  role   = aws_iam_role.shop_orders_2026_mail.id
  policy = data.aws_iam_policy_document.shop_orders_2026_mail.json
}

resource "aws_iam_role_policy_attachment" "shop_orders_2026_mail" {
  for_each = toset(var.shop_orders_2026_mail_policy_arns)

  role       = aws_iam_role.shop_orders_2026_mail.name
  policy_arn = each.value
}

resource "aws_lambda_function" "shop_orders_2026_mail" {
  function_name = "${var.prefix}shop-orders_2026-mail"
  runtime       = "python3.13"
  handler       = "shop.mail.handler"
  s3_bucket     = var.code_bucket
  s3_key        = var.shop_orders_2026_mail_code_key
  role          = aws_iam_role.shop_orders_2026_mail.arn
  timeout       = 60
  memory_size   = 256
  tags = {
    Team = "shop"
  }

  logging_config {
    log_format = "Text"
    log_group  = aws_cloudwatch_log_group.shop_orders_2026_mail.name
  }
}

resource "aws_lambda_event_source_mapping" "shop_orders_2026_mail" {
  event_source_arn                   = aws_dynamodb_table.shop_orders_2026.stream_arn
  function_name                      = aws_lambda_function.shop_orders_2026_mail.arn
  starting_position                  = "TRIM_HORIZON"
  batch_size                         = 100
  maximum_batching_window_in_seconds = 0
  parallelization_factor             = 4
  bisect_batch_on_function_error     = false
  maximum_retry_attempts             = -1
  maximum_record_age_in_seconds      = 3600

  destination_config {
    on_failure {
      destination_arn = "arn:aws:sns:eu-west-1:123456789012:desk-failures"
    }
  }

  depends_on = [aws_iam_role_policy.shop_orders_2026_mail]
  tags = {
    Team = "shop"
  }
}

resource "aws_s3_bucket" "shop_orders_2026_audit_failures" {
  tags = {
    Team = "shop"
  }
}

resource "aws_s3_bucket_public_access_block" "shop_orders_2026_audit_failures" {
  bucket                  = aws_s3_bucket.shop_orders_2026_audit_failures.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_cloudwatch_log_group" "shop_orders_2026_audit" {
  name              = "/aws/lambda/${var.prefix}shop-orders_2026-audit"
  retention_in_days = 30
  tags = {
    Team = "shop"
  }
}

data "aws_iam_policy_document" "shop_orders_2026_audit_trust" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["lambda.amazonaws.com"]
    }
  }
}

data "aws_iam_policy_document" "shop_orders_2026_audit" {
  statement {
    sid = "OrdersStream"
    actions = [
      "dynamodb:DescribeStream",
      "dynamodb:GetRecords",
      "dynamodb:GetShardIterator",
      "dynamodb:ListStreams",
    ]
    resources = [aws_dynamodb_table.shop_orders_2026.stream_arn]
  }

  statement {
    sid       = "OrdersDescribe"
    actions   = ["dynamodb:DescribeTable"]
    resources = [aws_dynamodb_table.shop_orders_2026.arn]
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
    resources = ["${aws_cloudwatch_log_group.shop_orders_2026_audit.arn}:*"]
  }

  statement {
    sid     = "Failures"
    actions = ["s3:ListBucket", "s3:PutObject"]
    resources = [
      aws_s3_bucket.shop_orders_2026_audit_failures.arn,
      "${aws_s3_bucket.shop_orders_2026_audit_failures.arn}/*",
    ]
  }
}

resource "aws_iam_role" "shop_orders_2026_audit" {
  name               = "${var.prefix}shop-orders_2026-audit"
  description        = "What shop-orders_2026-audit may do."
  assume_role_policy = data.aws_iam_policy_document.shop_orders_2026_audit_trust.json
  tags = {
    Team = "shop"
  }
}

resource "aws_iam_role_policy" "shop_orders_2026_audit" {
  name   = "consumer"
  role   = aws_iam_role.shop_orders_2026_audit.id
  policy = data.aws_iam_policy_document.shop_orders_2026_audit.json
}

resource "aws_iam_role_policy_attachment" "shop_orders_2026_audit" {
  for_each = toset(var.shop_orders_2026_audit_policy_arns)

  role       = aws_iam_role.shop_orders_2026_audit.name
  policy_arn = each.value
}

resource "aws_lambda_function" "shop_orders_2026_audit" {
  function_name = "${var.prefix}shop-orders_2026-audit"
  runtime       = "python3.13"
  handler       = "audit_consumer.handler"
  s3_bucket     = var.code_bucket
  s3_key        = var.shop_orders_2026_audit_code_key
  role          = aws_iam_role.shop_orders_2026_audit.arn
  timeout       = 60
  memory_size   = 256
  tags = {
    Team = "shop"
  }

  logging_config {
    log_format = "Text"
    log_group  = aws_cloudwatch_log_group.shop_orders_2026_audit.name
  }
}

resource "aws_lambda_event_source_mapping" "shop_orders_2026_audit" {
  event_source_arn                   = aws_dynamodb_table.shop_orders_2026.stream_arn
  function_name                      = aws_lambda_function.shop_orders_2026_audit.arn
  starting_position                  = "LATEST"
  batch_size                         = 100
  maximum_batching_window_in_seconds = 0
  parallelization_factor             = 1
  bisect_batch_on_function_error     = false
  maximum_retry_attempts             = -1
  maximum_record_age_in_seconds      = -1

  destination_config {
    on_failure {
      destination_arn = aws_s3_bucket.shop_orders_2026_audit_failures.arn
    }
  }

  depends_on = [aws_iam_role_policy.shop_orders_2026_audit]
  tags = {
    Team = "shop"
  }
}

resource "aws_sns_topic" "shop_orders_2026_bell_failures" {
  name_prefix       = "${var.prefix}shop-orders_2026-bell-failures-"
  kms_master_key_id = "alias/aws/sns"
  tags = {
    Team = "shop"
  }
}

resource "aws_cloudwatch_log_group" "shop_orders_2026_bell" {
  name              = "/aws/lambda/${var.prefix}shop-orders_2026-bell"
  retention_in_days = 30
  tags = {
    Team = "shop"
  }
}

data "aws_iam_policy_document" "shop_orders_2026_bell_trust" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["lambda.amazonaws.com"]
    }
  }
}

data "aws_iam_policy_document" "shop_orders_2026_bell" {
  statement {
    sid = "OrdersStream"
    actions = [
      "dynamodb:DescribeStream",
      "dynamodb:GetRecords",
      "dynamodb:GetShardIterator",
      "dynamodb:ListStreams",
    ]
    resources = [aws_dynamodb_table.shop_orders_2026.stream_arn]
  }

  statement {
    sid       = "OrdersDescribe"
    actions   = ["dynamodb:DescribeTable"]
    resources = [aws_dynamodb_table.shop_orders_2026.arn]
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
    resources = ["${aws_cloudwatch_log_group.shop_orders_2026_bell.arn}:*"]
  }

  statement {
    sid       = "Failures"
    actions   = ["sns:Publish"]
    resources = [aws_sns_topic.shop_orders_2026_bell_failures.arn]
  }
}

resource "aws_iam_role" "shop_orders_2026_bell" {
  name               = "${var.prefix}shop-orders_2026-bell"
  description        = "What shop-orders_2026-bell may do."
  assume_role_policy = data.aws_iam_policy_document.shop_orders_2026_bell_trust.json
  tags = {
    Team = "shop"
  }
}

resource "aws_iam_role_policy" "shop_orders_2026_bell" {
  name   = "consumer"
  role   = aws_iam_role.shop_orders_2026_bell.id
  policy = data.aws_iam_policy_document.shop_orders_2026_bell.json
}

resource "aws_iam_role_policy_attachment" "shop_orders_2026_bell" {
  for_each = toset(var.shop_orders_2026_bell_policy_arns)

  role       = aws_iam_role.shop_orders_2026_bell.name
  policy_arn = each.value
}

resource "aws_lambda_function" "shop_orders_2026_bell" {
  function_name = "${var.prefix}shop-orders_2026-bell"
  runtime       = "python3.13"
  handler       = "bell_consumer.handler"
  s3_bucket     = var.code_bucket
  s3_key        = var.shop_orders_2026_bell_code_key
  role          = aws_iam_role.shop_orders_2026_bell.arn
  timeout       = 60
  memory_size   = 256
  tags = {
    Team = "shop"
  }

  logging_config {
    log_format = "Text"
    log_group  = aws_cloudwatch_log_group.shop_orders_2026_bell.name
  }
}

resource "aws_lambda_event_source_mapping" "shop_orders_2026_bell" {
  event_source_arn                   = aws_dynamodb_table.shop_orders_2026.stream_arn
  function_name                      = aws_lambda_function.shop_orders_2026_bell.arn
  starting_position                  = "TRIM_HORIZON"
  batch_size                         = 100
  maximum_batching_window_in_seconds = 0
  parallelization_factor             = 1
  bisect_batch_on_function_error     = false
  maximum_retry_attempts             = -1
  maximum_record_age_in_seconds      = -1

  destination_config {
    on_failure {
      destination_arn = aws_sns_topic.shop_orders_2026_bell_failures.arn
    }
  }

  depends_on = [aws_iam_role_policy.shop_orders_2026_bell]
  tags = {
    Team = "shop"
  }
}

data "aws_iam_policy_document" "reader" {
  statement {
    sid       = "OrdersRead"
    actions   = ["dynamodb:BatchGetItem", "dynamodb:GetItem"]
    resources = [aws_dynamodb_table.shop_orders_2026.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["ORDER#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "OrdersByCustomerQuery"
    actions   = ["dynamodb:Query"]
    resources = ["${aws_dynamodb_table.shop_orders_2026.arn}/index/by_customer"]

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
    sid       = "StockByPlaceQuery"
    actions   = ["dynamodb:Query"]
    resources = ["${aws_dynamodb_table.shop_stock.arn}/index/by-place"]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["PLACE#*"]
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
  name        = "${var.prefix}shop.orders_2026-reader"
  description = "Reads all that the design's access patterns read, and writes nothing."
  policy      = data.aws_iam_policy_document.reader.json
  tags = {
    Team = "shop"
  }
}

data "aws_iam_policy_document" "service" {
  statement {
    sid       = "OrdersRead"
    actions   = ["dynamodb:BatchGetItem", "dynamodb:GetItem"]
    resources = [aws_dynamodb_table.shop_orders_2026.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["ORDER#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "OrdersByCustomerQuery"
    actions   = ["dynamodb:Query"]
    resources = ["${aws_dynamodb_table.shop_orders_2026.arn}/index/by_customer"]

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
    sid       = "StockByPlaceQuery"
    actions   = ["dynamodb:Query"]
    resources = ["${aws_dynamodb_table.shop_stock.arn}/index/by-place"]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["PLACE#*"]
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

resource "aws_iam_policy" "service" {
  name        = "${var.prefix}shop.orders_2026-service"
  description = "Reads and writes all that the design's access patterns do."
  policy      = data.aws_iam_policy_document.service.json
  tags = {
    Team = "shop"
  }
}

data "aws_iam_policy_document" "keeper" {
  statement {
    sid       = "Keep"
    actions   = ["dynamodb:CreateBackup", "dynamodb:DescribeContinuousBackups", "dynamodb:DescribeTable"]
    resources = [aws_dynamodb_table.shop_orders_2026.arn, aws_dynamodb_table.shop_stock.arn]
  }

  statement {
    sid     = "Look"
    actions = ["dynamodb:DescribeBackup"]
    resources = [
      "${aws_dynamodb_table.shop_orders_2026.arn}/backup/*",
      "${aws_dynamodb_table.shop_stock.arn}/backup/*",
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
  name        = "${var.prefix}shop.orders_2026-keeper"
  description = "Makes and looks at backups; it deletes and restores none."
  policy      = data.aws_iam_policy_document.keeper.json
  tags = {
    Team = "shop"
  }
}

resource "aws_cloudwatch_metric_alarm" "read_throttles" {
  for_each = {
    "shop.orders_2026-read-throttles" = {
      TableName = aws_dynamodb_table.shop_orders_2026.name
    }
    "shop.orders_2026-by-day-read-throttles" = {
      TableName                = aws_dynamodb_table.shop_orders_2026.name
      GlobalSecondaryIndexName = "by-day"
    }
    "shop.orders_2026-by_customer-read-throttles" = {
      TableName                = aws_dynamodb_table.shop_orders_2026.name
      GlobalSecondaryIndexName = "by_customer"
    }
    "shop-stock-read-throttles" = {
      TableName = aws_dynamodb_table.shop_stock.name
    }
    "shop-stock-by-place-read-throttles" = {
      TableName                = aws_dynamodb_table.shop_stock.name
      GlobalSecondaryIndexName = "by-place"
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
    Team = "shop"
  }
}

resource "aws_cloudwatch_metric_alarm" "write_throttles" {
  for_each = {
    "shop.orders_2026-write-throttles" = {
      TableName = aws_dynamodb_table.shop_orders_2026.name
    }
    "shop.orders_2026-by-day-write-throttles" = {
      TableName                = aws_dynamodb_table.shop_orders_2026.name
      GlobalSecondaryIndexName = "by-day"
    }
    "shop.orders_2026-by_customer-write-throttles" = {
      TableName                = aws_dynamodb_table.shop_orders_2026.name
      GlobalSecondaryIndexName = "by_customer"
    }
    "shop-stock-write-throttles" = {
      TableName = aws_dynamodb_table.shop_stock.name
    }
    "shop-stock-by-place-write-throttles" = {
      TableName                = aws_dynamodb_table.shop_stock.name
      GlobalSecondaryIndexName = "by-place"
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
    Team = "shop"
  }
}

resource "aws_cloudwatch_metric_alarm" "backfill_throttles" {
  for_each = {
    "shop.orders_2026-by-day-backfill-throttles" = {
      TableName                = aws_dynamodb_table.shop_orders_2026.name
      GlobalSecondaryIndexName = "by-day"
    }
    "shop.orders_2026-by_customer-backfill-throttles" = {
      TableName                = aws_dynamodb_table.shop_orders_2026.name
      GlobalSecondaryIndexName = "by_customer"
    }
    "shop-stock-by-place-backfill-throttles" = {
      TableName                = aws_dynamodb_table.shop_stock.name
      GlobalSecondaryIndexName = "by-place"
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
    Team = "shop"
  }
}

resource "aws_cloudwatch_metric_alarm" "system_errors" {
  for_each = {
    "shop.orders_2026-system-errors" = {
      TableName = aws_dynamodb_table.shop_orders_2026.name
    }
    "shop-stock-system-errors" = {
      TableName = aws_dynamodb_table.shop_stock.name
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
    Team = "shop"
  }
}

resource "aws_cloudwatch_metric_alarm" "user_errors" {
  alarm_name          = "${var.prefix}shop.orders_2026-user-errors"
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
    Team = "shop"
  }
}

resource "aws_cloudwatch_metric_alarm" "replication_latency" {
  for_each = {
    "shop-stock-eu-central-1-replication-latency" = {
      TableName       = aws_dynamodb_table.shop_stock.name
      ReceivingRegion = "eu-central-1"
    }
    "shop-stock-us-east-1-replication-latency" = {
      TableName       = aws_dynamodb_table.shop_stock.name
      ReceivingRegion = "us-east-1"
    }
  }

  alarm_name          = "${var.prefix}${each.key}"
  alarm_description   = "A replica is behind."
  namespace           = "AWS/DynamoDB"
  metric_name         = "ReplicationLatency"
  dimensions          = each.value
  statistic           = "Average"
  period              = 60
  comparison_operator = "GreaterThanThreshold"
  threshold           = 10000
  evaluation_periods  = 5
  datapoints_to_alarm = 3
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
  tags = {
    Team = "shop"
  }
}

resource "aws_cloudwatch_metric_alarm" "iterator_age" {
  for_each = {
    "shop-orders_2026-mail-iterator-age" = {
      FunctionName = aws_lambda_function.shop_orders_2026_mail.function_name
    }
    "shop-orders_2026-audit-iterator-age" = {
      FunctionName = aws_lambda_function.shop_orders_2026_audit.function_name
    }
    "shop-orders_2026-bell-iterator-age" = {
      FunctionName = aws_lambda_function.shop_orders_2026_bell.function_name
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
    Team = "shop"
  }
}

resource "aws_cloudwatch_metric_alarm" "errors" {
  for_each = {
    "shop-orders_2026-mail-errors" = {
      FunctionName = aws_lambda_function.shop_orders_2026_mail.function_name
    }
    "shop-orders_2026-audit-errors" = {
      FunctionName = aws_lambda_function.shop_orders_2026_audit.function_name
    }
    "shop-orders_2026-bell-errors" = {
      FunctionName = aws_lambda_function.shop_orders_2026_bell.function_name
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
    Team = "shop"
  }
}

data "aws_iam_policy_document" "tables_endpoint" {
  statement {
    sid     = "TheseTables"
    actions = ["dynamodb:*"]
    resources = [
      aws_dynamodb_table.shop_orders_2026.arn,
      "${aws_dynamodb_table.shop_orders_2026.arn}/*",
      aws_dynamodb_table.shop_stock.arn,
      "${aws_dynamodb_table.shop_stock.arn}/*",
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
    Team = "shop"
  }
}

output "table_arns" {
  description = "The tables, by name."
  value = {
    "shop.orders_2026" = aws_dynamodb_table.shop_orders_2026.arn
    "shop-stock"       = aws_dynamodb_table.shop_stock.arn
  }
}

output "stream_arns" {
  description = "The streams, by the name of their table."
  value = {
    "shop.orders_2026" = aws_dynamodb_table.shop_orders_2026.stream_arn
    "shop-stock"       = aws_dynamodb_table.shop_stock.stream_arn
  }
}

output "policy_arns" {
  description = "The policies, by role."
  value = {
    reader  = aws_iam_policy.reader.arn
    service = aws_iam_policy.service.arn
    keeper  = aws_iam_policy.keeper.arn
  }
}
