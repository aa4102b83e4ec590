# Written by tavola iac terraform for gallery-tournaments, sum 63b081adc9f68c60.

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

resource "aws_dynamodb_table" "gallery_tournaments" {
  name                        = "${var.prefix}gallery-tournaments"
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
    name = "tournamentId"
    type = "S"
  }

  attribute {
    name = "region"
    type = "S"
  }

  attribute {
    name = "round"
    type = "S"
  }

  attribute {
    name = "bracket"
    type = "S"
  }

  attribute {
    name = "matchId"
    type = "S"
  }

  global_secondary_index {
    name            = "TournamentRegionIndex"
    projection_type = "ALL"

    key_schema {
      attribute_name = "tournamentId"
      key_type       = "HASH"
    }

    key_schema {
      attribute_name = "region"
      key_type       = "HASH"
    }

    key_schema {
      attribute_name = "round"
      key_type       = "RANGE"
    }

    key_schema {
      attribute_name = "bracket"
      key_type       = "RANGE"
    }

    key_schema {
      attribute_name = "matchId"
      key_type       = "RANGE"
    }
  }

  lifecycle {
    prevent_destroy = true
  }
}

output "table_arns" {
  description = "The tables, by name."
  value = {
    "gallery-tournaments" = aws_dynamodb_table.gallery_tournaments.arn
  }
}
