variable "project" {
  type    = string
  default = "bank"
}
variable "stage" {
  type = string
}
variable "more_tags" {
  type    = map(string)
  default = { Team = "ledger" }
}
variable "mode" {}

resource "aws_dynamodb_table" "counters" {
  for_each       = toset(["daily", "monthly"])
  name           = "${var.project}-${each.key}"
  hash_key       = "id"
  read_capacity  = 10
  write_capacity = 5
  attribute {
    name = "id"
    type = "S"
  }
}

resource "aws_dynamodb_table" "rates" {
  name           = "rates-${var.mode}"
  billing_mode   = "PROVISIONED"
  hash_key       = "pair"
  read_capacity  = 5
  write_capacity = 5
  attribute {
    name = "pair"
    type = "S"
  }
}

resource "aws_dynamodb_global_secondary_index" "rates_by_bank" {
  table_name = aws_dynamodb_table.rates.name
  index_name = "by-bank"
  key_schema {
    attribute_name = "bank"
    attribute_type = "S"
    key_type       = "HASH"
  }
  projection {
    projection_type = "ALL"
  }
}

resource "aws_appautoscaling_target" "read" {
  service_namespace  = "dynamodb"
  resource_id        = "table/${aws_dynamodb_table.rates.name}"
  scalable_dimension = "dynamodb:table:ReadCapacityUnits"
  min_capacity       = 5
  max_capacity       = 50
}
resource "aws_appautoscaling_target" "write" {
  service_namespace  = "dynamodb"
  resource_id        = "table/${aws_dynamodb_table.rates.name}"
  scalable_dimension = "dynamodb:table:WriteCapacityUnits"
  min_capacity       = 5
  max_capacity       = 20
}
resource "aws_appautoscaling_policy" "read" {
  name               = "read"
  policy_type        = "TargetTrackingScaling"
  resource_id        = aws_appautoscaling_target.read.resource_id
  scalable_dimension = aws_appautoscaling_target.read.scalable_dimension
  service_namespace  = aws_appautoscaling_target.read.service_namespace
  target_tracking_scaling_policy_configuration {
    target_value = 65
  }
}

resource "aws_lambda_function" "totals" {
  function_name = "totals"
  handler       = "totals.handler"
  runtime       = "python3.12"
  role          = aws_iam_role.totals.arn
  timeout       = 20
}

resource "aws_lambda_event_source_mapping" "totals" {
  event_source_arn               = aws_dynamodb_table.ledger.stream_arn
  function_name                  = aws_lambda_function.totals.arn
  starting_position              = "LATEST"
  batch_size                     = 200
  bisect_batch_on_function_error = true
  function_response_types        = ["ReportBatchItemFailures"]
  filter_criteria {
    filter {
      pattern = jsonencode({ eventName = ["INSERT", "MODIFY"] })
    }
  }
  destination_config {
    on_failure {
      destination_arn = aws_sqs_queue.failed.arn
    }
  }
}

data "aws_iam_policy_document" "totals" {
  statement {
    sid       = "ReadTheLedger"
    actions   = ["dynamodb:Query", "dynamodb:GetItem"]
    resources = [aws_dynamodb_table.ledger.arn, "${aws_dynamodb_table.ledger.arn}/index/*"]
    condition {
      test     = "ForAllValues:StringEquals"
      variable = "dynamodb:LeadingKeys"
      values   = ["&{aws:PrincipalTag/account}"]
    }
  }
}

resource "aws_iam_policy" "totals" {
  name   = "totals"
  policy = data.aws_iam_policy_document.totals.json
}

resource "aws_iam_role_policy" "admin" {
  role   = aws_iam_role.totals.id
  policy = <<-EOT
    {
      "Version": "2012-10-17",
      "Statement": [{"Effect": "Allow", "Action": "dynamodb:*", "Resource": "${aws_dynamodb_table.rates.arn}"}]
    }
  EOT
}

module "cache" {
  source   = "terraform-aws-modules/dynamodb-table/aws"
  version  = "~> 4.0"
  name     = "${local.name}-cache"
  hash_key = "key"
  attributes = [
    { name = "key", type = "S" },
    { name = "owner", type = "S" },
  ]
  global_secondary_indexes = [
    { name = "by-owner", hash_key = "owner", projection_type = "ALL" }
  ]
  ttl_enabled        = true
  ttl_attribute_name = "until"
}

module "network" {
  source = "./network"
}
