"""The support desk under load, beside the same routes written by hand: plain boto3 on DynamoDB Local."""
