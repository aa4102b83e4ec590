"""The Terraform review history: every review of every stack in versions that never change, and what became of it.

Holds the reviews, what is counted of them, their REST and pages, and the ways in from outside: files of results, and analysers. Knows the
public names of Tavola, the patterns and the shell of the applications, and nothing below or beside them.
"""
