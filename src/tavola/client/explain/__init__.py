"""`db.explain`: the requests and the cost of client operations, before or while they run."""
