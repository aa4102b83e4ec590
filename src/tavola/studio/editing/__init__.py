"""Editing: what becomes of an item that a person changes, from the first key press to the undo.

Holds what is wrong with an item and what writing it costs, the keys that follow from its fields, writes that lose nobody's
change and can be undone, changes of many items, and the files that items come from and go to. Knows tables by what
DynamoDB says of them and entities by the design; no page and no HTTP.
"""
