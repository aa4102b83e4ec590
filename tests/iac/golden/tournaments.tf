# Written by tavola iac terraform for gallery-tournaments, sum af5c678f07cc9206.

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
