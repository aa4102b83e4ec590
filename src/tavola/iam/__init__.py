"""IAM: who may do what.

Holds policy documents, the actions and resources that a request touches, and the decision with the
statement that made it. Knows requests as data and no socket, so a policy can be tried without a server.
No policy is enforced yet: the endpoint takes every caller at their word.
"""
