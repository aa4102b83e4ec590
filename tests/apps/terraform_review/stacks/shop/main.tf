# A small web shop with mistakes that are often made.
terraform {
  required_version = ">= 1.6"
}

provider "aws" {
  region = var.region
}

resource "aws_s3_bucket" "uploads" {
  bucket = "shop-uploads-${var.stage}"
  acl    = "public-read"
}

resource "aws_security_group" "web" {
  name = "shop-web"

  ingress {
    from_port   = 22
    to_port     = 22
    protocol    = "tcp"
    cidr_blocks = ["0.0.0.0/0"]
  }

  egress {
    from_port   = 0
    to_port     = 0
    protocol    = "-1"
    cidr_blocks = ["0.0.0.0/0"]
  }
}

resource "aws_instance" "web" {
  ami           = var.image
  instance_type = "m5.4xlarge"
}

module "archive" {
  source = "./modules/archive"
  name   = "shop-archive-${var.stage}"
}
