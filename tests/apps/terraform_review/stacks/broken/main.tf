# Cut off in the middle, as a merge leaves a file.
resource "aws_s3_bucket" "half" {
  bucket = "half-${
