"""The service desk: tickets and comments by caller, for a voice service desk.

It has four operations: report an issue, get a ticket, add a comment, list a caller's tickets. Items have exactly the attributes of
the original design, so that a Lambda function with boto3 and this application can share one table.
"""
