# Written by tavola iac terraform for gallery-tenancy, with policies, sum 5242917b30ed4cf5.

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

resource "aws_dynamodb_table" "gallery_tenancy" {
  name                        = "${var.prefix}gallery-tenancy"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "PK"
  range_key                   = "SK"
  table_class                 = "STANDARD"
  deletion_protection_enabled = false

  attribute {
    name = "PK"
    type = "S"
  }

  attribute {
    name = "SK"
    type = "S"
  }

  attribute {
    name = "tenantId"
    type = "S"
  }

  attribute {
    name = "customerId"
    type = "S"
  }

  attribute {
    name = "resourceType"
    type = "S"
  }

  attribute {
    name = "resourceId"
    type = "S"
  }

  global_secondary_index {
    name            = "TenantResourceIndex"
    projection_type = "ALL"

    key_schema {
      attribute_name = "tenantId"
      key_type       = "HASH"
    }

    key_schema {
      attribute_name = "customerId"
      key_type       = "HASH"
    }

    key_schema {
      attribute_name = "resourceType"
      key_type       = "RANGE"
    }

    key_schema {
      attribute_name = "resourceId"
      key_type       = "RANGE"
    }
  }

  lifecycle {
    prevent_destroy = true
  }
}

data "aws_iam_policy_document" "reader" {
  statement {
    sid       = "TenancyRead"
    actions   = ["dynamodb:GetItem"]
    resources = [aws_dynamodb_table.gallery_tenancy.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["TENANT#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "TenancyByCustomerQuery"
    actions   = ["dynamodb:Query"]
    resources = ["${aws_dynamodb_table.gallery_tenancy.arn}/index/TenantResourceIndex"]
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
  name        = "${var.prefix}gallery-tenancy-reader"
  description = "Runs every read pattern of the design; no writes."
  policy      = data.aws_iam_policy_document.reader.json
}

data "aws_iam_policy_document" "writer" {
  statement {
    sid       = "TenancyWrite"
    actions   = ["dynamodb:PutItem"]
    resources = [aws_dynamodb_table.gallery_tenancy.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["TENANT#*"]
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

resource "aws_iam_policy" "writer" {
  name        = "${var.prefix}gallery-tenancy-writer"
  description = "Runs every write of the design, with the reads that these need."
  policy      = data.aws_iam_policy_document.writer.json
}

data "aws_iam_policy_document" "service" {
  statement {
    sid       = "TenancyItems"
    actions   = ["dynamodb:GetItem", "dynamodb:PutItem"]
    resources = [aws_dynamodb_table.gallery_tenancy.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["TENANT#*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }

  statement {
    sid       = "TenancyByCustomerQuery"
    actions   = ["dynamodb:Query"]
    resources = ["${aws_dynamodb_table.gallery_tenancy.arn}/index/TenantResourceIndex"]
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
  name        = "${var.prefix}gallery-tenancy-service"
  description = "Runs every access pattern of the design."
  policy      = data.aws_iam_policy_document.service.json
}

output "table_arns" {
  description = "The tables, by name."
  value = {
    "gallery-tenancy" = aws_dynamodb_table.gallery_tenancy.arn
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
