"""Service desk: tickets and their comments, by caller; the four operations of a voice service desk.

Holds the domain, the table, the use cases, and two faces: JSON and pages. Items are exactly those of the design it
follows, so that a Lambda function with boto3 and this application may share one table.
"""
