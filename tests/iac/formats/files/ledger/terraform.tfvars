stage = "prod"
