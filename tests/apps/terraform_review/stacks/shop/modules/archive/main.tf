variable "name" {
  type = string
}

resource "aws_s3_bucket" "archive" {
  bucket = var.name
}

resource "aws_s3_bucket_versioning" "archive" {
  bucket = aws_s3_bucket.archive.id

  versioning_configuration {
    status = "Suspended"
  }
}
