terraform {
  required_providers {
    aws = { source = "hashicorp/aws", version = ">= 6.29" }
  }
}

locals {
  name = "${var.project}-ledger-${lower(var.stage)}"
  tags = merge({ Project = var.project }, var.more_tags)
}

/* Entries are written once,
   and read by account. */
resource "aws_dynamodb_table" "ledger" {
  name         = local.name
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "account"
  range_key    = "entry"
  table_class  = "STANDARD"

  dynamic "attribute" {
    for_each = { account = "S", entry = "N", kind = "S", day = "S", amount = "N" }
    content {
      name = attribute.key
      type = attribute.value
    }
  }

  global_secondary_index {
    name            = "by-kind"
    projection_type = "INCLUDE"
    non_key_attributes = ["amount_text", "account"]
    key_schema {
      attribute_name = "kind"
      key_type       = "HASH"
    }
    key_schema {
      attribute_name = "day"
      key_type       = "HASH"
    }
    key_schema {
      attribute_name = "amount"
      key_type       = "RANGE"
    }
  }

  global_secondary_index {
    name            = "by-day" # the deprecated spelling
    hash_key        = "day"
    range_key       = "entry"
    projection_type = "KEYS_ONLY"
  }

  local_secondary_index {
    name            = "by-amount"
    range_key       = "amount"
    projection_type = "ALL"
  }

  stream_enabled   = true
  stream_view_type = "NEW_IMAGE"

  ttl {
    attribute_name = "expires_at"
    enabled        = true
  }

  point_in_time_recovery {
    enabled                 = var.stage == "prod" ? true : false
    recovery_period_in_days = 14
  }

  server_side_encryption {
    enabled     = true
    kms_key_arn = aws_kms_key.ledger.arn
  }

  replica {
    region_name = "eu-central-1"
  }

  deletion_protection_enabled = true
  tags                        = local.tags
}

resource "aws_kms_key" "ledger" {
  description = "for the ledger"
}
