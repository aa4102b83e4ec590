variable "region" {
  type    = string
  default = "eu-west-1"
}

variable "stage" {
  type    = string
  default = "test"
}

variable "image" {
  type = string
}

variable "database_password" {
  type      = string
  sensitive = true
}
