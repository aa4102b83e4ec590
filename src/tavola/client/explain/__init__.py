"""Explaining: what an operation of the client asks and costs, before or while it is done."""
