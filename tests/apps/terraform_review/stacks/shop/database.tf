resource "aws_db_instance" "orders" {
  identifier          = "shop-orders"
  engine              = "postgres"
  instance_class      = "db.m5.large"
  allocated_storage   = 100
  username            = "shop"
  password            = var.database_password
  publicly_accessible = true
  skip_final_snapshot = true
}

resource "aws_dynamodb_table" "baskets" {
  name         = "shop-baskets"
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "id"

  attribute {
    name = "id"
    type = "S"
  }
}

resource "aws_cloudwatch_log_group" "web" {
  name = "/shop/web"
}
